package discovery

import (
	"slices"
	"time"
)

// warmingBound is how long routes wait for the clusters that they need to be
// acknowledged. An Envoy withholds that while clusters warm, for at most 15 s.
const warmingBound = 20 * time.Second

// next is the first response that the order allows, nil where nothing is due:
// clusters with those that may still be routed to, their endpoints, then what
// leads to them, and at last the clusters without those that nothing leads to any
// more (docs/decisions/017-streams.md).
func (st *Stream) next(target *streamed) *Response {
	to := func(s *set) at { return at{s, target.view} }
	listeners := target.listenersAt(st.client.proxy.IP)
	if r := st.dueClusters(target, st.leaving(target, listeners)); r != nil {
		return r
	}
	if r := st.dueOf(&st.endpoints, to(target.endpoints), st.endpointsNamed); r != nil {
		return r
	}
	if st.warming() {
		return nil
	}
	if r := st.dueOf(&st.listeners, to(listeners), listeners.named); r != nil {
		return r
	}
	return st.dueOf(&st.routes, to(target.routes), target.tableNamed)
}

// leaving is what the proxy may still route by although it should have something
// else.
type leaving struct {
	views []*view
	done  bool // nothing at all, so that what is in no view may go too
}

func (st *Stream) leaving(target *streamed, listeners *set) leaving {
	l := leaving{done: st.arrived()}
	l.add(&st.listeners, listeners, target.view)
	l.add(&st.routes, target.routes, target.view)
	if l.done {
		st.past = nil
	}
	l.views = append(l.views, st.past...)
	return l
}

// add takes in what one type may be at: nothing else once the proxy has
// acknowledged all that it should have.
func (l *leaving) add(t *subscribed, desired *set, target *view) {
	if !t.asked {
		return
	}
	if len(t.underway) == 0 && len(t.refused) == 0 && len(t.groups) == 0 && t.has(desired) {
		t.good, t.sent = at{desired, target}, at{desired, target}
		return
	}
	l.done = false
	for _, s := range append([]*sending{{at: t.good}, {at: t.sent}}, t.underway...) {
		if s.view != nil && s.view != target && !slices.Contains(l.views, s.view) {
			l.views = append(l.views, s.view)
		}
	}
}

// tableNamed is empty where there is none: an Envoy that is told nothing never
// becomes ready.
func (a *v3Answers) tableNamed(name string) *resource {
	if r := a.routes.named(name); r != nil {
		return r
	}
	return a.parts().emptyTable(name)
}

// endpointsNamed is empty for what means none: an Envoy that is told nothing waits.
func (st *Stream) endpointsNamed(name string) *resource {
	return endpointsNamed(st.server.current.Load(), name, st.endpoints.sent.set)
}

// dueClusters is the response for clusters: those of the target, and those that
// the proxy may still route to. They wait for nothing.
func (st *Stream) dueClusters(target *streamed, leaving leaving) *Response {
	t := &st.clusters
	if !t.asked {
		return nil
	}
	if t.came.version != "" && t.sent.set == nil && t.came.version != target.clusters.version {
		// By which clusters it routes only the time before this server knows.
		st.past = st.server.past.viewsOf(st.client.proxy, target.view)
		leaving.views = append(leaving.views, st.past...)
	}
	to := at{target.clustersBeside(leaving.views), target.view}
	t.reconcile(to, to.set.named)
	if leaving.done {
		for _, name := range t.came.gone {
			t.owe(name)
		}
		t.came.gone = nil
	}
	r := t.respond(to, to.set.named, st.delta)
	if r == nil {
		return nil
	}
	for _, c := range r.differing {
		if c.endpoints != "" && st.endpoints.named.has(c.endpoints) {
			// Changed, it waits for its endpoints although they are the same.
			st.endpoints.owe(c.endpoints)
		}
	}
	return st.send(t, r, to)
}

// dueOf is the response for another type. One at a time is under way.
func (st *Stream) dueOf(t *subscribed, to at, find func(string) *resource) *Response {
	if !t.asked || len(t.underway) > 0 {
		return nil
	}
	t.reconcile(to, find)
	r := t.respond(to, find, st.delta)
	if r == nil {
		return nil
	}
	return st.send(t, r, to)
}

// send notes that a response is under way.
func (st *Stream) send(t *subscribed, r *Response, to at) *Response {
	s := &sending{at: at{r.leadsTo, to.view}, resources: r.differing, since: time.Now()}
	s.adds = slices.ContainsFunc(r.differing, func(c *resource) bool { return t.sent.named(c.name) == nil || t.owed[c.name] })
	st.nonce++
	r.nonce = nonceOf(st.nonce)
	s.nonce, t.newest = r.nonce, r.nonce
	t.sent = s.at
	t.owed = nil
	t.underway = append(t.underway, s)
	return r
}

// warming reports whether routes have to wait for clusters, and has Next look
// again when that has lasted too long.
func (st *Stream) warming() bool {
	for _, s := range st.clusters.underway {
		left := warmingBound - time.Since(s.since)
		if !s.adds || left <= 0 {
			continue
		}
		if st.patience == nil {
			st.patience = time.AfterFunc(left, st.awake)
		} else {
			st.patience.Reset(left)
		}
		return true
	}
	return false
}

// arrived reports whether it is known what the proxy routes by. One that comes
// with clusters has routes too, or after a while none.
func (st *Stream) arrived() bool {
	if len(st.clusters.came.gone) == 0 && st.clusters.came.version == "" {
		return true
	}
	if st.listeners.asked && st.routes.asked {
		return true
	}
	left := warmingBound - time.Since(st.since)
	if left <= 0 {
		return true
	}
	if st.patience == nil {
		st.patience = time.AfterFunc(left, st.awake)
	}
	return false
}

// has reports whether the proxy was sent all that it wants of a set.
func (t *subscribed) has(desired *set) bool {
	if t.sent.set == nil || len(t.owed) > 0 {
		return false
	}
	d := desired.since(t.sent.set)
	return len(d.removed) == 0 && !slices.ContainsFunc(d.changed, func(r *resource) bool { return t.wants(r.name) })
}
