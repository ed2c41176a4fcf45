package stream

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/pilot-api/pilot-api/discovery/compiled"
	"github.com/pilot-api/pilot-api/discovery/nack"
	"github.com/pilot-api/pilot-api/discovery/pastviews"
	"github.com/pilot-api/pilot-api/discovery/xds"
)

// next returns the first response that the order allows, or nil if nothing is pending.
// Clusters come first, together with old ones that the proxy may still route to. Then come
// their endpoints, then the listeners and routes that lead to them, and last the clusters
// without the old ones (docs/decisions/017-streams.md).
func (st *Stream) next(target *compiled.Streamed) *xds.Response {
	if st.proxyless {
		return st.nextProxyless(target)
	}
	if st.onlySecrets {
		return st.nextSecrets(target)
	}
	if st.awaitsHosts() {
		return nil
	}
	st.closeTables(target)
	listeners, routes := st.meet(target)
	leaving := st.leaving(target, listeners, routes)
	if r := st.dueClusters(target, leaving); r != nil {
		return r
	}
	endpoints, find := st.endpointsNow(target, leaving, st.moves(listeners, routes))
	if r := st.dueOf(&st.endpoints, endpoints, find); r != nil {
		return r
	}
	// Clusters that warm may wait for secrets, so secrets wait for nothing.
	secrets := compiled.At{Set: st.secretsOf(target.V3Answers), View: target.View}
	if r := st.dueOf(&st.secrets, secrets, secrets.Named); r != nil {
		return r
	}
	lacking := st.lacking(target)
	if !st.waits(&st.listeners, listeners, lacking) {
		if r := st.dueOf(&st.listeners, listeners, listeners.Named); r != nil {
			return r
		}
	}
	if st.waits(&st.routes, routes, lacking) {
		return nil
	}
	if r := st.dueOf(&st.routes, routes, st.tableNamed(target)); r != nil {
		return r
	}
	if st.closeTables(target) {
		routes.Set = st.routesOf(target)
		if r := st.dueOf(&st.routes, routes, st.tableNamed(target)); r != nil {
			return r
		}
	}
	return st.dueHosts()
}

// meet records what the proxy already has. It returns the listeners and routes that the
// proxy should have.
func (st *Stream) meet(target *compiled.Streamed) (listeners, routes compiled.At) {
	listeners = compiled.At{Set: target.ListenersAt(st.proxy.Address()), View: target.View}
	routes = compiled.At{Set: st.routesOf(target), View: target.View}
	clusters := compiled.At{Set: target.Clusters, View: target.View}
	if initial := &st.clusters.initial; initial.withSomething() {
		st.arrival = time.Now()
		st.pastViews = st.mayRouteBy(initial.version, target)
	}
	st.resume()
	st.clusters.meet(clusters, clusters.Named)
	st.meetEndpoints(target)
	st.listeners.meet(listeners, listeners.Named)
	st.listeners.withdrawGone()
	st.routes.meet(routes, st.tableNamed(target))
	secrets := compiled.At{Set: st.secretsOf(target.V3Answers), View: target.View}
	st.secrets.meet(secrets, secrets.Named)
	return listeners, routes
}

// mayRouteBy returns the views that a proxy may route by if it came with clusters of some
// version. They do not cover the clusters that the proxy names itself.
func (st *Stream) mayRouteBy(version string, target *compiled.Streamed) []*compiled.View {
	views := []*compiled.View{target.View}
	if version == "" || version == target.Clusters.Version {
		return views
	}
	return append(views, st.proxy.PastViews(target.View, func(v *compiled.View) bool {
		answers, err := v.EncodedStreamed(st.proxy.Address())
		return err == nil && answers.Clusters.Version == version
	})...)
}

// leaving returns the views, except the target, that the proxy may still route by, oldest
// first. If there are none, clusters that the proxy came with and that no longer exist are
// withdrawn too.
func (st *Stream) leaving(target *compiled.Streamed, listeners, routes compiled.At) []*compiled.View {
	var views []*compiled.View
	add := func(v *compiled.View) {
		if v != nil && v != target.View && !slices.Contains(views, v) {
			views = append(views, v)
		}
	}
	// Both must be called, because both record the result.
	settled := st.isKnown()
	settled = st.listeners.isAt(listeners, add) && settled
	settled = st.routes.isAt(routes, add) && settled
	if settled {
		st.arrival, st.pastViews = time.Time{}, nil
		st.clusters.withdrawGone()
	} else if !st.arrival.IsZero() && !slices.Contains(st.pastViews, target.View) {
		// The clusters that the proxy came with stay as long as this view. They may go with
		// the next one.
		st.pastViews = append(st.pastViews[max(0, len(st.pastViews)-pastviews.MaxHeld):], target.View)
	}
	for _, v := range st.pastViews {
		add(v)
	}
	sortViews(views)
	return views
}

// sortViews puts the oldest first.
func sortViews(views []*compiled.View) {
	slices.SortStableFunc(views, func(a, b *compiled.View) int { return cmp.Compare(a.Serial, b.Serial) })
}

// isAt reports whether the proxy is at one set and at no other. If it is not, elsewhere
// is called with the views that it may be at.
func (t *subscription) isAt(to compiled.At, elsewhere func(*compiled.View)) bool {
	if !t.asked || t.rests(to) {
		return true
	}
	t.maybeAt(elsewhere)
	return false
}

// isKnown reports whether it is known what the proxy routes by. A proxy that comes with
// clusters also subscribes to routes. If it has not done so after a while, it has none.
func (st *Stream) isKnown() bool {
	return st.arrival.IsZero() || st.listeners.asked && st.routes.asked || !st.within(st.arrival)
}

// within reports whether a wait that began at a time still lasts.
func (st *Stream) within(since time.Time) bool { return st.lasts(since.Add(pastviews.WarmingBound)) }

// lasts reports whether a time is still to come. If so, Next looks again then.
func (st *Stream) lasts(end time.Time) bool {
	now := time.Now()
	if !now.Before(end) {
		return false
	}
	if !st.look.After(now) || end.Before(st.look) {
		st.look = end
		if st.patience != nil {
			st.patience.Stop()
		}
		st.patience = time.AfterFunc(end.Sub(now), st.Awake)
	}
	return true
}

// dueClusters returns the response for clusters: those of the target, and those that the
// proxy may still route to. It does not wait for the last ack, because an Envoy withholds
// it while clusters warm.
func (st *Stream) dueClusters(target *compiled.Streamed, leaving []*compiled.View) *xds.Response {
	t := &st.clusters
	if !t.asked || st.crowded() {
		return nil
	}
	to := compiled.At{Set: target.ClustersBeside(leaving), View: target.View}
	r, differing := t.due(to, to.Set.Named, st.delta)
	if r == nil {
		return nil
	}
	for _, c := range differing {
		if !nack.Same(c, t.sent.Named(c.Name)) || !nack.Same(c, t.nacks.LastAcked(t, c.Name)) {
			st.warm(c)
		}
	}
	var adds []string
	for _, c := range differing {
		if t.mayLack(c) {
			adds = append(adds, c.Name)
		}
	}
	return st.send(t, r, to, adds)
}

// warm makes the endpoints of a cluster pending. A changed cluster waits for them even if
// they are the same.
func (st *Stream) warm(c *xds.Resource) {
	t := &st.endpoints
	if c.Endpoints != "" && (t.Wants(c.Endpoints) || !t.asked && !st.arrival.IsZero()) {
		t.pending.add(c.Endpoints)
	}
}

// mayLack reports whether the proxy may have nothing of a resource's name.
func (t *subscription) mayLack(r *xds.Resource) bool {
	return t.sent.Named(r.Name) == nil || t.pending.has(r.Name) || t.nacks.Lacks(r.Name)
}

// dueOf returns the response for a type other than clusters. Only one such response is in
// flight at a time.
func (st *Stream) dueOf(t *subscription, to compiled.At, find func(string) *xds.Resource) *xds.Response {
	if !t.asked || len(t.inFlight) > 0 {
		return nil
	}
	r, _ := t.due(to, find, st.delta)
	if r == nil {
		return nil
	}
	return st.send(t, r, to, nil)
}

// send records that a response is in flight. adds are its clusters that the proxy may lack.
func (st *Stream) send(t *subscription, r *xds.Response, to compiled.At, adds []string) *xds.Response {
	st.nonce++
	r.Nonce, r.Content = nonceOf(st.nonce), st.shared.Contents.Shared(r.Content)
	t.inFlight = append(t.inFlight, &sentResponse{Sent: nack.Sent{Nonce: r.Nonce, Content: r.Content, At: to}, version: r.Version, adds: adds, made: t.pending.made, since: time.Now()})
	t.lastNonce, t.sent, t.pending = r.Nonce, to, pending{later: t.pending.later}
	t.waiting = time.Time{}
	t.nacks.NoteSent(r.Nonce)
	t.nacks.ForgetAll()
	return r
}

func nonceOf(count uint64) string { return strconv.FormatUint(count, 36) }

// endpointsNamed returns an empty set for a name without endpoints. Without an answer, an
// Envoy would wait.
func (st *Stream) endpointsNamed(name string) *xds.Resource {
	return compiled.EndpointsNamed(st.shared.Encoder.Current.Load(), name, st.endpoints.sent.Set, st.proxyless)
}
