package discovery

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/pilot-api/pilot-api/discovery/xds"
	"github.com/pilot-api/pilot-api/mesh"
)

// streamed is what the proxies of a view are to have on their streams at one
// moment: what the view says, and the endpoints of its clusters, which change
// without it. It is immutable, and shared by them.
type streamed struct {
	*v3Answers
	endpoints *xds.Set
	beside    map[string]*xds.Set // with those of clusters that are being withdrawn, by their names
	revision  int64               // from which on it is so
	until     atomic.Int64        // revision of what took its place, 0 while nothing did

	besideMu sync.Mutex
}

// streamedOf is what a view says now. It is made when the first stream asks, and
// kept up to date from then on (restream).
func (s *Publisher) streamedOf(v *view, ip string) (*streamed, error) {
	return s.streamedAs(&v.streamed, v, func() (*v3Answers, error) { return v.encodedStreamed(ip) })
}

// streamedAs is the value of a view that encode makes.
func (s *Publisher) streamedAs(at *atomic.Pointer[streamed], v *view, encode func() (*v3Answers, error)) (*streamed, error) {
	if st := at.Load(); st != nil {
		return st, nil
	}
	answers, err := encode()
	if err != nil {
		return nil, err
	}
	// No generation begins meanwhile: who is missed by one is made for the next.
	s.advancing.RLock()
	defer s.advancing.RUnlock()
	v.streaming.Lock()
	defer v.streaming.Unlock()
	if st := at.Load(); st != nil {
		return st, nil
	}
	st := &streamed{v3Answers: answers, endpoints: answers.endpointsIn(s.current.Load()), revision: v.revision}
	at.Store(st)
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
		for _, at := range []*atomic.Pointer[streamed]{&v.streamed, &v.proxyless} {
			st := at.Load()
			if st == nil {
				continue
			}
			if moved := st.moved(services, next); moved != st {
				at.Store(moved)
				st.until.Store(next.mesh.Revision)
				changed[v] = true
			}
		}
	}
	return changed
}

// moved is what it is after services changed; itself when none of its own is among
// them.
func (st *streamed) moved(services []mesh.ServiceChange, next *generation) *streamed {
	st.besideMu.Lock()
	defer st.besideMu.Unlock()
	out := &streamed{v3Answers: st.v3Answers, endpoints: movedEndpoints(st.endpoints, services, next), revision: next.mesh.Revision}
	same := out.endpoints == st.endpoints
	for key, s := range st.beside {
		out.keepBeside(key, movedEndpoints(s, services, next))
		same = same && out.beside[key] == s
	}
	if same {
		return st
	}
	return out
}

// endpointsBeside are the endpoints together with those of clusters that only the
// older views have.
func (st *streamed) endpointsBeside(older []*view) *xds.Set {
	beside := endpointKeys(st.view.withdrawnSince(older))
	if len(beside) == 0 {
		return st.endpoints
	}
	key := strings.Join(beside, "\n")
	st.besideMu.Lock()
	defer st.besideMu.Unlock()
	if s := st.beside[key]; s != nil {
		return s
	}
	s := endpointsOf(st.view.server.current.Load(), append(beside, endpointKeys(st.view.config.Clusters)...), st.endpoints)
	st.keepBeside(key, s)
	return s
}

func (st *streamed) keepBeside(key string, s *xds.Set) {
	if st.beside == nil {
		st.beside = map[string]*xds.Set{}
	}
	if len(st.beside) < maxMerged {
		st.beside[key] = s
	}
}

// endpointsIn are those of its clusters.
func (a *v3Answers) endpointsIn(g *generation) *xds.Set {
	if a.proxyless != nil {
		return a.proxyless.endpoints(g)
	}
	return endpointsOf(g, endpointKeys(a.view.config.Clusters), nil)
}

// endpointsOf are the sets of keys. One that Envoy would refuse stays as it was before,
// or is not there.
func endpointsOf(g *generation, keys []string, before *xds.Set) *xds.Set {
	slices.Sort(keys)
	all := make([]*xds.Resource, 0, len(keys))
	for _, key := range slices.Compact(keys) {
		if r := endpointsNamed(g, key, before, false); r != nil {
			all = append(all, r)
		}
	}
	return xds.NewEndpointSet(all, false)
}

func endpointsNamed(g *generation, key string, before *xds.Set, proxyless bool) *xds.Resource {
	of := g.endpoints.of(key)
	spelled := of.v3
	if proxyless {
		spelled = of.forProxyless
	}
	if found := spelled(); found != nil || before == nil {
		return found
	}
	return before.Named(key)
}

func keyHost(c mesh.ServiceChange) string {
	if c.After != nil {
		return c.After.KeyHost()
	}
	return c.Before.KeyHost()
}

// movedEndpoints is a set of endpoints after services changed; the set itself when none of its own is
// among them.
func movedEndpoints(s *xds.Set, services []mesh.ServiceChange, next *generation) *xds.Set {
	out := s
	for _, c := range services {
		for at := range s.OfHost(keyHost(c)) {
			r := endpointsNamed(next, s.Sorted[at].Name, s, s.Proxyless)
			if r == s.Sorted[at] || r.Hash == s.Sorted[at].Hash {
				continue
			}
			if out == s {
				out = xds.NewEndpointSet(slices.Clone(s.Sorted), s.Proxyless)
			}
			out.Sorted[at] = r
		}
	}
	return out
}
