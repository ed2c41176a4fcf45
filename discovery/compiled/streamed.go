package compiled

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/pilot-api/pilot-api/discovery/xds"
	"github.com/pilot-api/pilot-api/mesh"
)

// Streamed is the configuration that the proxies of a view should have on their streams at
// one moment: the resources of the view, and the endpoints of its clusters, which change
// independently of the view. It is immutable. All proxies of the view share it.
type Streamed struct {
	*V3Answers
	Endpoints *xds.Set
	beside    map[string]*xds.Set // with those of clusters that are being withdrawn, by their names
	Revision  int64               // of the publication from which it is in force
	Since     int64               // the first revision that the one before, if any, does not show
	Until     atomic.Int64        // the first revision that it does not show, 0 while it is in force

	besideMu sync.Mutex
	kept     map[keptEndpoints]*xds.Set // what EndpointsKeeping returned
}

// Streamed returns the present Streamed of the view. It is made when the first stream asks,
// and then kept up to date (see Follow).
func (v *View) Streamed(ip string) (*Streamed, error) {
	return v.current(&v.onStreamsNow, func() (*V3Answers, error) { return v.EncodedStreamed(ip) })
}

// Proxyless is Streamed for clients of gRPC.
func (v *View) Proxyless() (*Streamed, error) { return v.current(&v.toProxyless, v.EncodedProxyless) }

// current returns the present value; the first caller makes it with encode.
func (v *View) current(at *atomic.Pointer[Streamed], encode func() (*V3Answers, error)) (*Streamed, error) {
	if st := at.Load(); st != nil {
		return st, nil
	}
	answers, err := encode()
	if err != nil {
		return nil, err
	}
	// No generation begins while this is held, so none is missed.
	v.Encoder.Advancing.RLock()
	defer v.Encoder.Advancing.RUnlock()
	v.streaming.Lock()
	defer v.streaming.Unlock()
	if st := at.Load(); st != nil {
		return st, nil
	}
	st := &Streamed{V3Answers: answers, Endpoints: answers.EndpointsIn(v.Encoder.Current.Load()), Revision: v.Revision, Since: v.Since}
	at.Store(st)
	return st, nil
}

// Follow brings the streamed resources of the view to another generation, and reports
// whether their endpoints changed. The caller holds Encoder.Advancing.
func (v *View) Follow(services []mesh.ServiceChange, next *Generation) (changed bool) {
	for _, at := range []*atomic.Pointer[Streamed]{&v.onStreamsNow, &v.toProxyless} {
		st := at.Load()
		if st == nil {
			continue
		}
		if moved := st.moved(services, next); moved != st {
			at.Store(moved)
			st.Until.Store(next.Since)
			changed = true
		}
	}
	return changed
}

// moved returns s after some services changed. It returns s itself if no endpoint of s is
// of these services.
func (st *Streamed) moved(services []mesh.ServiceChange, next *Generation) *Streamed {
	st.besideMu.Lock()
	defer st.besideMu.Unlock()
	out := &Streamed{V3Answers: st.V3Answers, Endpoints: movedEndpoints(st.Endpoints, services, next), Revision: next.Mesh.Revision, Since: next.Since}
	same := out.Endpoints == st.Endpoints
	for key, s := range st.beside {
		out.keepBeside(key, movedEndpoints(s, services, next))
		same = same && out.beside[key] == s
	}
	if same {
		return st
	}
	return out
}

// EndpointsBeside returns the endpoints together with those of clusters that only the older
// views have.
func (st *Streamed) EndpointsBeside(older []*View) *xds.Set {
	beside := EndpointKeys(st.View.withdrawnSince(older))
	if len(beside) == 0 {
		return st.Endpoints
	}
	key := strings.Join(beside, "\n")
	st.besideMu.Lock()
	defer st.besideMu.Unlock()
	if s := st.beside[key]; s != nil {
		return s
	}
	s := endpointsOf(st.View.Encoder.Current.Load(), append(beside, EndpointKeys(st.View.Config.Clusters)...), st.Endpoints)
	st.keepBeside(key, s)
	return s
}

func (st *Streamed) keepBeside(key string, s *xds.Set) {
	if st.beside == nil {
		st.beside = map[string]*xds.Set{}
	}
	if len(st.beside) < maxMerged {
		st.beside[key] = s
	}
}

// EndpointsIn returns the endpoints of the clusters of a view in a generation.
func (a *V3Answers) EndpointsIn(g *Generation) *xds.Set {
	if a.proxyless != nil {
		return a.proxyless.endpoints(g)
	}
	return endpointsOf(g, EndpointKeys(a.View.Config.Clusters), nil)
}

// endpointsOf returns the endpoint sets of some keys. If Envoy would refuse a set, the set
// of before stays, or is left out if there was none.
func endpointsOf(g *Generation, keys []string, before *xds.Set) *xds.Set {
	slices.Sort(keys)
	all := make([]*xds.Resource, 0, len(keys))
	for _, key := range slices.Compact(keys) {
		if r := EndpointsNamed(g, key, before, false); r != nil {
			all = append(all, r)
		}
	}
	return xds.NewEndpointSet(all, false)
}

func EndpointsNamed(g *Generation, key string, before *xds.Set, proxyless bool) *xds.Resource {
	of := g.Endpoints.Of(key)
	resource := of.V3
	if proxyless {
		resource = of.forProxyless
	}
	if found := resource(); found != nil || before == nil {
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

// movedEndpoints returns a set of endpoints after some services changed. It returns the set
// itself if none of its endpoints is of these services.
func movedEndpoints(s *xds.Set, services []mesh.ServiceChange, next *Generation) *xds.Set {
	out := s
	for _, c := range services {
		for at := range s.OfHost(keyHost(c)) {
			r := EndpointsNamed(next, s.Sorted[at].Name, s, s.Proxyless)
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
