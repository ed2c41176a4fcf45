package discovery

import (
	"iter"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
)

// streamed is what the proxies of a view are to have on their streams at one
// moment: what the view says, and the endpoints of its clusters, which change
// without it. It is immutable, and shared by them.
type streamed struct {
	*v3Answers
	endpoints *set
	revision  int64        // from which on it is so
	until     atomic.Int64 // revision of what took its place, 0 while nothing did
}

// streamedOf is what a view says now. It is made when the first stream asks, and
// kept up to date from then on (restream).
func (s *Publisher) streamedOf(v *view, ip string) (*streamed, error) {
	if st := v.streamed.Load(); st != nil {
		return st, nil
	}
	answers, err := v.encodedStreamed(ip)
	if err != nil {
		return nil, err
	}
	// No generation begins meanwhile: who is missed by one is made for the next.
	s.advancing.RLock()
	defer s.advancing.RUnlock()
	v.streaming.Lock()
	defer v.streaming.Unlock()
	if st := v.streamed.Load(); st != nil {
		return st, nil
	}
	g := s.current.Load()
	st := &streamed{v3Answers: answers, endpoints: endpointsOf(g, v.config, nil), revision: v.revision}
	v.streamed.Store(st)
	return st, nil
}

// restream brings the endpoints of all views that somebody streams from one
// generation to the next, and returns the views that have others by that. The
// caller holds advancing.
func (s *Publisher) restream(before, next *generation) map[*view]bool {
	services := next.mesh.ServicesSince(before.mesh)
	if len(services) == 0 {
		return nil
	}
	changed := map[*view]bool{}
	for v := range s.fleet.toldViews() {
		st := v.streamed.Load()
		if st == nil {
			continue
		}
		if endpoints := st.endpoints.moved(services, next); endpoints != st.endpoints {
			v.streamed.Store(&streamed{v3Answers: st.v3Answers, endpoints: endpoints, revision: next.mesh.Revision})
			st.until.Store(next.mesh.Revision)
			changed[v] = true
		}
	}
	return changed
}

// endpointsOf are the sets that the clusters of a configuration ask for. One that
// Envoy would refuse stays as it was before, or is not there.
func endpointsOf(g *generation, config *ir.Config, before *set) *set {
	keys := endpointKeys(config)
	slices.Sort(keys)
	out := &set{typeURL: EndpointType, sorted: make([]*resource, 0, len(keys))}
	for _, key := range slices.Compact(keys) {
		if r := endpointsNamed(g, key, before); r != nil {
			out.sorted = append(out.sorted, r)
		}
	}
	return out
}

func endpointsNamed(g *generation, key string, before *set) *resource {
	r := g.endpoints.of(key).v3()
	if r == nil && before != nil {
		return before.named(key)
	}
	return r
}

// moved is the set after services changed; the set itself when none of its own is
// among them.
func (s *set) moved(services []mesh.ServiceChange, next *generation) *set {
	out := s
	for _, c := range services {
		for at := range s.ofHost(keyHost(c)) {
			r := endpointsNamed(next, s.sorted[at].name, s)
			if r == s.sorted[at] || r.hash == s.sorted[at].hash {
				continue
			}
			if out == s {
				out = &set{typeURL: s.typeURL, sorted: slices.Clone(s.sorted)}
			}
			out.sorted[at] = r
		}
	}
	return out
}

func keyHost(c mesh.ServiceChange) string {
	if c.After != nil {
		return c.After.KeyHost()
	}
	return c.Before.KeyHost()
}

// ofHost is where the endpoint sets of a service stand: their keys are its host, or
// begin with it and a bar (mesh.ServiceKey).
func (s *set) ofHost(host string) iter.Seq[int] {
	return func(yield func(int) bool) {
		if at, found := s.search(host); found && !yield(at) {
			return
		}
		host += "|"
		for at, _ := s.search(host); at < len(s.sorted) && strings.HasPrefix(s.sorted[at].name, host); at++ {
			if !yield(at) {
				return
			}
		}
	}
}
