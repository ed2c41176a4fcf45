package discovery

import (
	"sync"
	"time"

	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// past is what proxies may have been told before this server started: by what
// was stored when it did, under the settings of now and of before. A version in
// a poll is a hash and names no clusters; the past does, so that none is
// withdrawn while the routes of those days lead to it.
type past struct {
	mu     sync.Mutex
	states []func() *generation
}

// PastFor is how long there is a past: by then every proxy that polls has come.
const PastFor = 2 * maxPace

// begin takes the first snapshot, and forgets it when its time is over. What no
// proxy asks for is not made.
func (p *past) begin(s *Publisher, first *mesh.Snapshot, objs []*schema.Object) {
	p.mu.Lock()
	defer p.mu.Unlock()
	time.AfterFunc(PastFor, p.forget)
	p.states = []func() *generation{sync.OnceValue(func() *generation { return newGeneration(s, first, nil) })}
	for _, settings := range s.opts.PastSettings {
		p.states = append(p.states, sync.OnceValue(func() *generation {
			var g *generation
			err := s.recoverPanic("mesh of the past", func() error {
				g = newGeneration(s, mesh.NewSnapshot(first.Revision, settings, objs), nil)
				return nil
			})
			if err != nil {
				return nil
			}
			return g
		}))
	}
}

// viewsOf are the views of the past with clusters that the proxy's next view
// has not.
func (p *past) viewsOf(proxy mesh.Proxy, next *view) []*view {
	var out []*view
	for _, state := range p.current() {
		g := state()
		if g == nil {
			continue
		}
		_, v, err := g.viewOf(g.mesh.View(proxy))
		if err == nil && len(withdrawn(v.config, next.config)) > 0 {
			out = append(out, v)
		}
	}
	return out
}

func (p *past) current() []func() *generation {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.states
}

func (p *past) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.states = nil
}
