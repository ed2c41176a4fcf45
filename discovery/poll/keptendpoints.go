package poll

import (
	"slices"
	"time"

	"github.com/pilot-api/pilot-api/discovery/compiled"
	"github.com/pilot-api/pilot-api/discovery/pastviews"
)

// KeepsEndpoints reports whether a proxy that has instances of an endpoint set keeps them
// although the set is empty now. Without instances the set fails the requests of every route
// that leads there. When a change takes the last instance of a set, it often has routes
// leave the set too. So the proxy keeps the set until its polls show the new routes, or for
// a bounded time. next is the view that the proxy should have, and ahead reports whether the
// endpoints are already of a generation that the view does not follow yet.
func (t *Transition) KeepsEndpoints(name string, next *compiled.View, ahead bool) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !ahead && !t.moves(next) {
		t.emptied = nil
		return false
	}
	since, known := t.emptied[name]
	if !known {
		if !t.mayNeed(name, next) {
			return false
		}
		if t.emptied == nil {
			t.emptied = map[string]time.Time{}
		}
		since = time.Now()
		t.emptied[name] = since
	}
	return time.Since(since) < max(t.closeBy(next), pastviews.EmptiedBound)
}

// forgetEmptied records that the proxy is answered what there is of some endpoint sets.
func (t *Transition) forgetEmptied(names []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, name := range names {
		delete(t.emptied, name)
	}
}

// moves reports whether the proxy is not known to have the listeners and routes of a view.
func (t *Transition) moves(next *compiled.View) bool {
	if len(t.held) != 1 || t.target() != next || !t.arrival.IsZero() {
		return true
	}
	for _, s := range t.routed {
		if s.sent != next || s.passing.behind || s.passing.acked != s.passing.sent {
			return true
		}
	}
	return false
}

// mayNeed reports whether the proxy may have a cluster with an endpoint set. Before the views
// of a proxy are known, that is possible for any name; clients choose the names, so there
// may be only a few of these.
func (t *Transition) mayNeed(name string, next *compiled.View) bool {
	if len(t.held) == 0 {
		return len(t.emptied) < maxUnknownVersions
	}
	has := func(v *compiled.View) bool { return slices.Contains(compiled.EndpointKeys(v.Config.Clusters), name) }
	return has(next) || slices.ContainsFunc(t.held, has) || t.recent != nil && has(t.recent)
}
