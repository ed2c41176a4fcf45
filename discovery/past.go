package discovery

import (
	"fmt"
	"sync"
	"time"

	"github.com/pilot-api/pilot-api/mesh"
)

// past is what proxies may have been told before this server started: by what
// was stored when it did, under the settings of now and of before. A version in
// a poll is a hash and names no clusters; the past does, so that none is
// withdrawn while the routes of those days lead to it.
type past struct {
	mu     sync.Mutex
	states []func() *formerly
}

// formerly is one state of the past, with the views of those who asked. It is
// compiled apart from what holds now.
type formerly struct {
	*generation
	compiler compiler

	mu    sync.Mutex
	views map[string]*view
}

// PastFor is how long there is a past: by then every proxy that polls has come.
const PastFor = 2 * maxPace

// begin takes the first snapshot, and forgets it when its time is over. What no
// proxy asks for is not made.
func (p *past) begin(s *Publisher, first *mesh.Snapshot) {
	p.mu.Lock()
	defer p.mu.Unlock()
	time.AfterFunc(PastFor, p.forget)
	p.states = []func() *formerly{sync.OnceValue(func() *formerly { return s.formerly(func() *mesh.Snapshot { return first }) })}
	for _, settings := range s.opts.PastSettings {
		p.states = append(p.states, sync.OnceValue(func() *formerly {
			return s.formerly(func() *mesh.Snapshot { return mesh.NewSnapshot(first.Revision, settings, objectsOf(first)) })
		}))
	}
}

// formerly is nil where there is a mistake of ours.
func (s *Publisher) formerly(snapshot func() *mesh.Snapshot) (f *formerly) {
	_ = s.recoverPanic("mesh of the past", func() error {
		g := newGeneration(s, snapshot(), nil)
		compiler := s.newCompiler()
		compiler.Advance(g.mesh)
		f = &formerly{generation: g, compiler: compiler, views: map[string]*view{}}
		return nil
	})
	return f
}

// viewsOf are the views of the past with clusters that the proxy's next view
// has not.
func (p *past) viewsOf(proxy mesh.Proxy, next *view) []*view {
	var out []*view
	for _, state := range p.current() {
		f := state()
		if f == nil {
			continue
		}
		v, err := f.viewOf(proxy)
		if err == nil && len(withdrawn(v.config, next.config)) > 0 {
			out = append(out, v)
		}
	}
	return out
}

// viewOf is shared by all with the same key. Of those it keeps no more than
// there may be views now.
func (f *formerly) viewOf(proxy mesh.Proxy) (v *view, err error) {
	mv := f.mesh.View(proxy)
	key := mv.Key()
	f.mu.Lock()
	defer f.mu.Unlock()
	if v := f.views[key]; v != nil {
		return v, nil
	}
	err = f.server.recoverPanic("compile", func() error {
		config, _ := f.compiler.Proxy(mv)
		v = newView(f.generation, key, config)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("compile the past: %w", err)
	}
	if len(f.views) >= f.server.opts.MaxViews {
		f.compiler.Release(key, func() bool { return false })
		return v, nil
	}
	f.views[key] = v
	return v, nil
}

func (p *past) current() []func() *formerly {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.states
}

func (p *past) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.states = nil
}
