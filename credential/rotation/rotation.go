// Package rotation follows certificates and keys in files that other programs
// replace: in place, by another file of the same name, or by another target of a
// link to them or to their folder. While the files do not match, for example when
// only one of two files is new, the last good pair stays in use.
//
// The files are read once a second. File system events would need a watch at each
// link on the way to a file, would miss changes on network file systems, and would
// still need an occasional read (docs/decisions/021-secrets.md).
package rotation

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/pilot-api/pilot-api/credential"
)

// interval is the time between two looks.
const interval = time.Second

// State is the result of following a set of files. States that are equal by == are
// the same.
type State struct {
	// Pair is the last usable one; zero before the first.
	Pair credential.Pair
	// Problem says why the Pair is not the current content of the files, or what is
	// wrong with it nevertheless; "" for nothing. It contains none of their text.
	Problem string
}

// Follower follows files under names that the caller chooses. Its methods are safe
// for concurrent use.
type Follower struct {
	log     *slog.Logger
	looking sync.Mutex
	follow  map[string]*followed // guarded by looking

	mu      sync.Mutex
	taken   int
	states  map[string]State
	changed chan struct{}
}

// New reads all files. An unusable file becomes a Problem of its State, and is
// logged.
func New(files map[string]Files, log *slog.Logger) *Follower {
	f := &Follower{
		log: log, follow: map[string]*followed{}, states: map[string]State{}, changed: make(chan struct{}),
	}
	for name, at := range files {
		f.follow[name] = &followed{files: at}
	}
	f.Look()
	return f
}

// States returns the states of all names. The map is the caller's.
func (f *Follower) States() map[string]State {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.states)
}

// State returns the state of a name.
func (f *Follower) State(name string) State {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.states[name]
}

// Taken returns how often a new pair was taken into use, the first time included.
func (f *Follower) Taken() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.taken
}

// Changed returns a channel that is closed at the next change of a State after the
// call.
func (f *Follower) Changed() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.changed
}

// Run calls Look every second until ctx ends, and returns ctx's error.
func (f *Follower) Run(ctx context.Context) error {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
			f.Look()
		}
	}
}

// Look reads all files once.
func (f *Follower) Look() {
	f.looking.Lock()
	defer f.looking.Unlock()
	taken, next := 0, map[string]State{}
	for _, name := range slices.Sorted(maps.Keys(f.follow)) {
		one := f.follow[name]
		before := one.state
		one.look(time.Now())
		next[name] = one.state
		if f.tell(name, before, one.state) {
			taken++
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.taken += taken
	if !maps.Equal(f.states, next) {
		f.states = next
		close(f.changed)
		f.changed = make(chan struct{})
	}
}

// tell logs the changes of a state, and reports whether the pair changed.
func (f *Follower) tell(name string, before, after State) (taken bool) {
	taken = !after.Pair.Equal(before.Pair)
	if taken {
		f.log.Info("certificate files are taken", "name", name)
	}
	switch {
	case after.Problem == before.Problem:
	case after.Problem != "":
		f.log.Warn("certificate files need a look", "name", name, "problem", after.Problem)
	default:
		f.log.Info("certificate files are good again", "name", name)
	}
	return taken
}
