package pastviews

import (
	"context"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/discovery/compiled"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// Recorder has views that proxies may have received and that are not in force here.
// There are two kinds: views from before the start of this server, compiled from the
// objects of that time under the present and earlier settings; and views that another
// replica may have sent recently. The version in a poll is a hash and names no clusters.
// The past views name them, so the server withdraws no cluster while old routes lead to it.
type Recorder struct {
	Options

	mu     sync.Mutex
	starts []*period // states from before the start, and the state at the start under each of the settings
	first  *period
	recent []*period // states that have ended since the start, oldest first
	// skipped are states that were never in force here, because the source delivered
	// several at once, oldest first. Other replicas may have sent them.
	skipped []*period
	since   time.Time
	time    *rate.Limiter // for states since the start; one token is one nanosecond
}

// Options configure a Recorder. All fields are required except Settings and Alone.
type Options struct {
	// Since returns the changes after a revision, and false if they are not known.
	Since func(revision int64) (changes []schema.Change, present int64, ok bool)
	// Settings are those of before the start.
	Settings []*mesh.Settings
	// NewCompiler returns a compiler for one state. The compiler may have too little memory
	// for any view.
	NewCompiler func() Compiler
	Encoder     *compiled.Encoder
	// Alone means that no other server has sent states of the source that were never in
	// force here.
	Alone bool
	// MaxViews bounds the views that are kept for each state.
	MaxViews int
}

// Compiler is the part of a compile.Compiler that a Recorder uses.
type Compiler interface {
	Advance(next *mesh.Snapshot)
	ProxyWithin(ctx context.Context, traits mesh.Traits) (*ir.Config, diag.List, error)
	Release(key string, wanted func() bool)
	Close()
}

// New returns a Recorder without any state.
func New(opts Options) *Recorder {
	return &Recorder{Options: opts, time: rate.NewLimiter(rate.Limit(float64(time.Second)*share), int(savings))}
}

// period is when a state of the past was in force.
type period struct {
	state  *pastState
	serial int64 // of the generation that it was, before all for those of the start
	lasted time.Duration
	ended  time.Time
}

const (
	// PastFor is how long a past state is kept: in that time every proxy that polls has
	// polled.
	PastFor = 2 * MaxPace
	// MaxHeld bounds the views that one proxy may be at. Beyond the bound, the oldest views
	// are skipped, except those that one of its tables is at.
	MaxHeld = 8
	// MaxPace bounds the time between polls that a transition waits for. A proxy that polls
	// less often gets everything at once.
	MaxPace = time.Minute
	// WarmingBound is how long routes wait for the ack of the clusters that they need. An
	// Envoy withholds that ack while clusters warm, for at most 15 s. WarmingBound is also
	// how long the server waits for the routes of a proxy that connected with clusters.
	WarmingBound = 20 * time.Second
	// EmptiedBound is the longest time for which a set of endpoints that has lost its last
	// instance is held back while the routes of a proxy leave it: routes wait for clusters
	// for one WarmingBound, and the proxy has as long to accept them.
	EmptiedBound = 2 * WarmingBound
	// share is the part of one processor's time that compiling states since the start may
	// take, and savings is how much of that time may be saved up. Clients choose the
	// versions in their polls, so they could have each of these states compiled. A state
	// for which there is no time is left out.
	share   = 0.1
	savings = 10 * time.Second
	// maxRecent bounds the states since the start. The last ones stay, because a proxy that
	// was just cut off may come with one of them, and so does the one that lasted longest.
	maxRecent = 4
)

// Begin records the first snapshot, and forgets it after PastFor. No view of it is compiled
// before a proxy needs it.
func (p *Recorder) Begin(first *mesh.Snapshot) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.since = time.Now()
	p.starts = append(p.stored(0, first), p.periodOf(func() *mesh.Snapshot { return first }))
	p.first = p.starts[len(p.starts)-1]
	for _, settings := range p.Settings {
		p.starts = append(p.starts, p.periodOf(func() *mesh.Snapshot {
			return mesh.NewSnapshot(first.Revision, settings, compiled.ObjectsOf(first)).WithFiles(first.Files).WithKeys(first.Keys)
		}))
	}
	time.AfterFunc(PastFor, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.starts, p.first = nil, nil
	})
}

// maxStored is the number of revisions before the start that are looked at.
const maxStored = 1 << 8

// stored returns the last states of the source between a revision and a snapshot, oldest
// first. Another server may have sent them a moment ago.
func (p *Recorder) stored(after int64, first *mesh.Snapshot) (states []*period) {
	known, _ := p.objectsAt(first.Revision)
	for r := first.Revision - 1; r > after && r > first.Revision-maxStored && len(states) < maxRecent; r-- {
		former, ok := p.objectsAt(r)
		if !ok {
			break
		}
		if maps.Equal(former, known) {
			continue
		}
		known = former
		states = append(states, p.periodOf(func() *mesh.Snapshot {
			return mesh.NewSnapshot(r, first.Settings, with(compiled.ObjectsOf(first), former)).WithFiles(first.Files).WithKeys(first.Keys)
		}))
	}
	slices.Reverse(states)
	return states
}

// objectsAt returns the objects that differ between a revision and now, as they were at
// that revision; nil for an object that did not exist. ok is false if they are not known.
func (p *Recorder) objectsAt(revision int64) (map[schema.Key]*schema.Object, bool) {
	changes, _, ok := p.Since(revision)
	former := map[schema.Key]*schema.Object{}
	for _, c := range changes {
		former[c.Key()] = c.Before
	}
	return former, ok
}

// with returns objects in which some replace those with the same keys.
func with(all []*schema.Object, instead map[schema.Key]*schema.Object) []*schema.Object {
	var out []*schema.Object
	for _, o := range all {
		if _, differs := instead[o.Key()]; !differs {
			out = append(out, o)
		}
	}
	for _, o := range instead {
		if o != nil {
			out = append(out, o)
		}
	}
	slices.SortFunc(out, mesh.CompareKeys)
	return out
}

func (p *Recorder) periodOf(snapshot func() *mesh.Snapshot) *period {
	return &period{state: &pastState{past: p, snapshot: snapshot}, serial: -1}
}

// End records a generation that is no longer in force.
func (p *Recorder) End(g, next *compiled.Generation) {
	var skipped []*period
	if !p.Alone {
		skipped = p.stored(g.Mesh.Revision, next.Mesh)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range skipped {
		e.state.sinceStart = true
	}
	p.skipped = append(p.skipped, skipped...)
	p.skipped = p.skipped[max(0, len(p.skipped)-maxRecent):]
	was := g.Mesh
	e := p.periodOf(func() *mesh.Snapshot { return was })
	e.state.sinceStart = true
	if g.Serial == 0 && p.first != nil {
		e.state = p.first.state
	}
	now := time.Now()
	e.serial, e.lasted, e.ended = g.Serial, now.Sub(p.since), now
	p.since = now
	p.recent = append(p.recent, e)
	if len(p.recent) > maxRecent {
		out := 0
		if p.recent[0].lasted > p.recent[1].lasted {
			out = 1
		}
		p.recent = slices.Delete(p.recent, out, out+1)
	}
	time.AfterFunc(PastFor, p.forget)
}

// forget drops the states that ended more than PastFor ago.
func (p *Recorder) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	over := func(e *period) bool { return time.Since(e.ended) >= PastFor }
	p.recent = slices.DeleteFunc(p.recent, over)
	if len(p.recent) == 0 {
		p.skipped = nil
	}
}

// ViewsOf returns the past views that the proxy may be at, oldest first: those with
// clusters that its next view lacks. The list begins with the view that the proxy is known
// to be at, if there is one. The entry of the proxy itself keeps the view that was in force
// when the entry was made. ViewsOf leaves out a state for which there is too little memory
// or time, as if it had never been in force.
func (p *Recorder) ViewsOf(proxy mesh.Proxy, next *compiled.View, born int64, is func(*compiled.View) bool) []*compiled.View {
	var out []*compiled.View
	var seen []*pastState
	for _, e := range slices.Backward(p.before(born)) {
		if slices.Contains(seen, e.state) {
			continue
		}
		seen = append(seen, e.state)
		v, err := e.state.viewOf(proxy)
		if err != nil {
			continue
		}
		if len(compiled.Withdrawn(v.Config, next.Config)) > 0 {
			out = append(out, v)
		}
		if is(v) {
			break
		}
	}
	slices.Reverse(out)
	return out
}

// before returns the states that ended before a generation, oldest first.
func (p *Recorder) before(serial int64) []*period {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := slices.Concat(p.starts, p.recent, p.skipped)
	return slices.DeleteFunc(all, func(e *period) bool { return e.serial >= serial })
}

// MakeRoom drops all compiled past views. They are compiled again on request, if memory
// allows.
func (p *Recorder) MakeRoom() {
	for _, e := range p.before(math.MaxInt64) {
		e.state.drop()
	}
}
