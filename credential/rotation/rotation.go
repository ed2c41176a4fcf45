// Package rotation follows certificates and keys in files that others replace: in
// place, by another file of the name, or by another target of a link to them or to
// their folder. What does not fit together, as while one of two files is new, leaves
// the last good pair as it is.
//
// The files are read once a second. Who waited for events of the file system would
// have to wait at each link of the way to a file, would miss those of network file
// systems, and would read once in a while all the same (docs/decisions/021-secrets.md).
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

// State is what became of some files. States that are equal by == are the same.
type State struct {
	// Pair is the last one that could be used; zero before the first.
	Pair credential.Pair
	// Problem is why what is in the files now is not the Pair, or what is wrong with it
	// all the same; "" for nothing. It has none of their text.
	Problem string
}

// Follower follows files by names that are the caller's. Its methods are safe for
// concurrent use.
type Follower struct {
	log     *slog.Logger
	looking sync.Mutex
	follow  map[string]*followed // guarded by looking

	mu      sync.Mutex
	taken   int
	states  map[string]State
	changed chan struct{}
}

// New reads all files. What cannot be used is a Problem of its State, and told the
// log.
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

// States are those of all names.
func (f *Follower) States() map[string]State {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.states)
}

// State is that of a name.
func (f *Follower) State(name string) State {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.states[name]
}

// Taken is how often other files were taken into use, the first time included.
func (f *Follower) Taken() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.taken
}

// Changed is closed at the next change of a State after the call.
func (f *Follower) Changed() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.changed
}

// Run looks until ctx ends, and returns ctx's error.
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

// Look reads all files.
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

// tell logs what has changed, and reports whether the pair has.
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
