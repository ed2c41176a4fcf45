package stream

import (
	"slices"
	"time"

	"github.com/pilot-api/pilot-api/discovery/compiled"
	"github.com/pilot-api/pilot-api/discovery/xds"
)

// maxUnderway bounds the responses for clusters that are not acked, and so the memory for a
// client that does not read.
const maxUnderway = 16

// waits reports whether listeners or routes that are due wait for clusters that the proxy may
// lack. They wait only if what changed in them leads to such a cluster. The wait is counted
// from when they became due: newer clusters that do not warm either do not prolong it.
func (st *Stream) waits(t *subscription, to compiled.At, lacking []string) bool {
	if len(lacking) == 0 || !t.isDue(to) || !t.leadsTo(to.View, lacking) {
		t.waiting = time.Time{}
		return false
	}
	if t.waiting.IsZero() {
		t.waiting = time.Now()
	}
	return st.within(t.waiting)
}

// isDue reports whether there is something to send, and nothing else in flight.
func (t *subscription) isDue(to compiled.At) bool {
	return t.asked && len(t.inFlight) == 0 && (!t.pending.nothing() || !t.wasSent(to.Set) && !t.nacks.IsAll(t, to.Set))
}

// leadsTo reports whether what the proxy was not sent yet may lead to one of some clusters.
func (t *subscription) leadsTo(v *compiled.View, clusters []string) bool {
	if t.sent.View == nil || t.pending.answer || t.pending.all || t.Wild() && len(t.pending.names) > 0 {
		return true
	}
	any := func(leads map[string]struct{}) bool {
		return slices.ContainsFunc(clusters, func(c string) bool { _, does := leads[c]; return does })
	}
	for name := range t.pending.names {
		if any(v.TableLeads(name)) {
			return true
		}
	}
	if t.sent.View == v {
		return false
	}
	for name, leads := range v.LeadsSince(t.sent.View) {
		if (name == t.typeURL || t.isTable(name)) && any(leads) {
			return true
		}
	}
	return false
}

// isTable reports whether the proxy subscribes to a route table.
func (t *subscription) isTable(name string) bool {
	return t.typeURL == xds.RouteType && name != xds.ListenerType && t.Wants(name)
}

// lacking returns the clusters of the target that the proxy may not have: it has not acked
// them, or they wait until it has acked others. An Envoy gives up on a cluster that does not
// warm, and so does the server.
func (st *Stream) lacking(target *compiled.Streamed) (names []string) {
	t := &st.clusters
	for _, s := range t.inFlight {
		if len(s.adds) > 0 && st.within(s.since) {
			names = append(names, s.adds...)
		}
	}
	if t.asked && st.crowded() {
		for _, r := range target.Clusters.Since(t.sent.Set).Changed {
			if t.Wants(r.Name) && t.sent.Named(r.Name) == nil {
				names = append(names, r.Name)
			}
		}
	}
	return names
}

// crowded reports whether too many responses for clusters are not acked. Newer ones wait
// until that changes, or until listeners or routes have waited for them for long.
func (st *Stream) crowded() bool {
	n := len(st.clusters.inFlight)
	return n >= 2*maxUnderway || n >= maxUnderway && !st.isOverdue(&st.listeners) && !st.isOverdue(&st.routes)
}

// isOverdue reports whether listeners or routes have waited for clusters for long.
func (st *Stream) isOverdue(t *subscription) bool {
	return !t.waiting.IsZero() && !st.within(t.waiting)
}
