package discovery

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/pilot-api/pilot-api/discovery/compiled"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// past is what proxies may have been told that this server does not know: before it
// started, by what was stored when it did, under the settings of now and of before;
// and lately, by another replica. A version in a poll is a hash and names no
// clusters; the past does, so that none is withdrawn while the routes of those days
// lead to it.
type past struct {
	mu     sync.Mutex
	starts []*epoch // of before the start, and of the start under each of the settings
	first  *epoch
	recent []*epoch // that were in force since, oldest first
	// skipped were never in force here, as the source told of several at once, oldest
	// first: other replicas may have told them.
	skipped []*epoch
	since   time.Time
}

// epoch is a state of the past.
type epoch struct {
	state  func() *formerly // made when somebody asks
	serial int64            // of the generation that it was, before all for those of the start
	lasted time.Duration
	ended  time.Time
}

// formerly is one state of the past, with the views of those who asked. It is
// compiled apart from what holds now.
type formerly struct {
	*compiled.Generation
	publisher *Publisher
	compiler  compiler

	mu    sync.Mutex
	views map[string]*compiled.View
}

const (
	// PastFor is how long there is a past: by then every proxy that polls has come.
	PastFor = 2 * maxPace
	// maxRecent bounds the states since the start: the last ones stay, of which a
	// proxy may come that was just cut off, and the one that lasted longest.
	maxRecent = 4
)

// begin takes the first snapshot, and forgets it when its time is over. What no
// proxy asks for is not made.
func (p *past) begin(s *Publisher, first *mesh.Snapshot) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.since = time.Now()
	p.starts = append(s.stored(0, first), s.epochOf(func() *mesh.Snapshot { return first }))
	p.first = p.starts[len(p.starts)-1]
	for _, settings := range s.opts.PastSettings {
		p.starts = append(p.starts, s.epochOf(func() *mesh.Snapshot {
			return mesh.NewSnapshot(first.Revision, settings, compiled.ObjectsOf(first)).WithFiles(first.Files)
		}))
	}
	time.AfterFunc(PastFor, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.starts, p.first = nil, nil
	})
}

// maxStored is how many revisions before the start are looked at.
const maxStored = 1 << 8

// stored are the last states that the source had after a revision and before a snapshot
// of it, oldest first: another server has told them, perhaps a moment ago.
func (s *Publisher) stored(after int64, first *mesh.Snapshot) (states []*epoch) {
	known, _ := s.formerObjects(first.Revision)
	for r := first.Revision - 1; r > after && r > first.Revision-maxStored && len(states) < maxRecent; r-- {
		former, ok := s.formerObjects(r)
		if !ok {
			break
		}
		if maps.Equal(former, known) {
			continue
		}
		known = former
		states = append(states, s.epochOf(func() *mesh.Snapshot {
			return mesh.NewSnapshot(r, first.Settings, with(compiled.ObjectsOf(first), former)).WithFiles(first.Files)
		}))
	}
	slices.Reverse(states)
	return states
}

// formerObjects are those that differ now from what they were at a revision, nil for
// one that was not there.
func (s *Publisher) formerObjects(revision int64) (map[schema.Key]*schema.Object, bool) {
	changes, _, ok := s.opts.Source.Since(revision)
	former := map[schema.Key]*schema.Object{}
	for _, c := range changes {
		former[c.Key()] = c.Before
	}
	return former, ok
}

// with has some objects in place of others of their keys.
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

func (s *Publisher) epochOf(snapshot func() *mesh.Snapshot) *epoch {
	return &epoch{state: sync.OnceValue(func() *formerly { return s.formerly(snapshot) }), serial: -1}
}

// end takes a generation that is in force no more, as the next one is.
func (p *past) end(s *Publisher, g, next *compiled.Generation) {
	skipped := s.stored(g.Mesh.Revision, next.Mesh)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.skipped = append(p.skipped, skipped...)
	p.skipped = p.skipped[max(0, len(p.skipped)-maxRecent):]
	was := g.Mesh
	e := s.epochOf(func() *mesh.Snapshot {
		return mesh.NewSnapshot(was.Revision, was.Settings, compiled.ObjectsOf(was)).WithFiles(was.Files)
	})
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

// forget lets go of the states whose time is over.
func (p *past) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	over := func(e *epoch) bool { return time.Since(e.ended) >= PastFor }
	p.recent = slices.DeleteFunc(p.recent, over)
	if len(p.recent) == 0 {
		p.skipped = nil
	}
}

// formerly is nil where there is a mistake of ours.
func (s *Publisher) formerly(snapshot func() *mesh.Snapshot) (f *formerly) {
	_ = s.recoverPanic("mesh of the past", func() error {
		g := compiled.NewGeneration(s.encoder, snapshot(), nil)
		compiler := s.newCompiler()
		compiler.Advance(g.Mesh)
		f = &formerly{Generation: g, publisher: s, compiler: compiler, views: map[string]*compiled.View{}}
		return nil
	})
	return f
}

// viewsOf are the views of the past that the proxy may be at, oldest first: those
// with clusters that its next view has not, back to the one that it is known to be at,
// if there is one. What was in force when the proxy's slot was born, the slot remembers itself.
func (p *past) viewsOf(proxy mesh.Proxy, next *compiled.View, born int64, is func(*compiled.View) bool) []*compiled.View {
	var out []*compiled.View
	var seen []*formerly
	for _, e := range slices.Backward(p.before(born)) {
		f := e.state()
		if f == nil || slices.Contains(seen, f) {
			continue
		}
		seen = append(seen, f)
		v, err := f.viewOf(proxy)
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

// before are the states that ended before a generation, oldest first.
func (p *past) before(serial int64) []*epoch {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := slices.Concat(p.starts, p.recent, p.skipped)
	return slices.DeleteFunc(all, func(e *epoch) bool { return e.serial >= serial })
}

// viewOf is shared by all with the same key. Of those it keeps no more than
// there may be views now.
func (f *formerly) viewOf(proxy mesh.Proxy) (v *compiled.View, err error) {
	mv := f.Mesh.View(proxy)
	key := mv.Key()
	f.mu.Lock()
	defer f.mu.Unlock()
	if v := f.views[key]; v != nil {
		return v, nil
	}
	err = f.publisher.recoverPanic("compile", func() error {
		config, _, err := f.compiler.ProxyWithin(context.Background(), mv)
		if err != nil {
			return err
		}
		v = compiled.NewView(f.Generation, key, config)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("compile the past: %w", err)
	}
	if len(f.views) >= f.publisher.opts.MaxViews {
		f.compiler.Release(key, func() bool { return false })
		return v, nil
	}
	f.views[key] = v
	return v, nil
}
