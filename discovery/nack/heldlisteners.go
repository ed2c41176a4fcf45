package nack

import (
	"math"
	"slices"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/discovery/compiled"
	"github.com/pilot-api/pilot-api/envoy"
	"github.com/pilot-api/pilot-api/ir"
)

// A listener whose TCP routes lead to a refused cluster stays as the proxy acked it, if
// nothing else of it has changed. Otherwise it is sent, and connections to the cluster are
// closed.

// holdListeners updates which listeners stay as they were. lacking are the refused clusters.
func (f *State) holdListeners(t Subscription, to compiled.At, lacking []refusedCluster) {
	if len(lacking) == 0 && len(f.byName) == 0 {
		return
	}
	next := listenersOf(to.View, t.Address())
	for name, c := range f.byName {
		if c.listener == nil || c.holdListener(to, next[name], lacking) {
			continue
		}
		delete(f.byName, name)
		if next[name] != nil {
			t.AddPending(name)
		}
	}
	if len(lacking) == 0 || t.Acked().View == nil {
		return
	}
	before := listenersOf(t.Acked().View, t.Address())
	for name, l := range next {
		acked := t.Acknowledged(name)
		if f.byName[name] != nil || before[name] == nil || acked == nil || Same(acked, to.Named(name)) {
			continue
		}
		c := &Nacked{acked: acked, listener: before[name], needs: clustersOf(before[name], t.Acked().View)}
		if c.holdListener(to, l, lacking) {
			f.hold(name, c)
		}
	}
}

func (f *State) hold(name string, c *Nacked) {
	if f.byName == nil {
		f.byName = map[string]*Nacked{}
	}
	f.byName[name] = c
}

// listenersOf returns the listeners of a view for a proxy at an address, by the names of
// their resources.
func listenersOf(v *compiled.View, ip string) map[string]*ir.Listener {
	all := map[string]*ir.Listener{}
	for _, l := range v.Config.ListenersAt(ip) {
		all[envoy.ListenerName(l)] = l
	}
	return all
}

// clustersOf returns a view with the clusters to which the TCP routes of a listener lead.
func clustersOf(l *ir.Listener, in *compiled.View) *compiled.View {
	names := map[string]bool{}
	l.EachTCPRoute(func(r ir.TCPRoute) {
		for _, c := range r.Clusters {
			names[c.Name] = true
		}
	})
	clusters := slices.DeleteFunc(slices.Clone(in.Config.Clusters), func(c *ir.Cluster) bool { return !names[c.Name] })
	return &compiled.View{Config: &ir.Config{Clusters: clusters}, Serial: math.MinInt64}
}

// holdListener reports whether a listener stays in the form that was acked, and records why.
func (c *Nacked) holdListener(to compiled.At, l *ir.Listener, lacking []refusedCluster) bool {
	if l == nil {
		return false
	}
	r := to.Named(envoy.ListenerName(l))
	if r == nil {
		return false
	}
	s := &listenerSplice{lacking: lacking}
	if s.isRefused(c.listener) {
		return false
	}
	spliced := s.splice(l, c.listener)
	if s.refused == nil || s.open || !Same(to.View.StreamedListener(spliced), c.acked) {
		return false
	}
	c.hash, c.blame, c.Origins = r.Hash, s.refused.blame, diag.UniqueRefs(s.origins)
	c.Words = waitsFor(s.refused)
	return true
}

// listenerSplice replaces the TCP routes of a listener that lead to refused clusters.
type listenerSplice struct {
	lacking []refusedCluster
	refused *refusedCluster // the first that a route leads to
	open    bool            // a route has nothing to stay as, or must not stay
	origins []diag.Ref      // of the routes
}

// splice returns the listener with the routes of an older one in place of those that lead to
// refused clusters.
func (s *listenerSplice) splice(l, old *ir.Listener) *ir.Listener {
	out := *l
	out.TCP = s.routes(l.TCP, old.TCP, l.Origins)
	out.Chains = slices.Clone(l.Chains)
	for i, chain := range l.Chains {
		if i < len(old.Chains) {
			next := *chain
			next.TCP = s.routes(chain.TCP, old.Chains[i].TCP, append(slices.Clone(chain.Origins), l.Origins...))
			out.Chains[i] = &next
		}
	}
	return &out
}

func (s *listenerSplice) routes(t, old *ir.TCPListener, origins []diag.Ref) *ir.TCPListener {
	if t == nil || old == nil {
		return t
	}
	out := *t
	out.Routes = slices.Clone(t.Routes)
	for i, r := range t.Routes {
		c := s.refusedBy(r)
		if c == nil {
			continue
		}
		if s.refused == nil {
			s.refused = c
		}
		s.open = s.open || c.secured || i >= len(old.Routes)
		if s.origins = append(s.origins, r.Origins...); len(r.Origins) == 0 {
			s.origins = append(s.origins, origins...)
		}
		if i < len(old.Routes) {
			out.Routes[i] = old.Routes[i]
		}
	}
	return &out
}

// refusedBy returns the refused cluster that a route leads to, nil for none.
func (s *listenerSplice) refusedBy(r ir.TCPRoute) (found *refusedCluster) {
	for _, c := range r.Clusters {
		if i := indexOf(s.lacking, c.Name); i >= 0 && (found == nil || s.lacking[i].secured) {
			found = &s.lacking[i]
		}
	}
	return found
}

// isRefused reports whether a listener leads to a refused cluster.
func (s *listenerSplice) isRefused(l *ir.Listener) (is bool) {
	l.EachTCPRoute(func(r ir.TCPRoute) { is = is || s.refusedBy(r) != nil })
	return is
}

// waitsFor says why something that leads to a refused cluster stays.
func waitsFor(c *refusedCluster) string {
	return "cluster " + c.name + ", to which it leads, is refused: " + c.words
}
