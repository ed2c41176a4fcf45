package discovery

import (
	"github.com/pilot-api/pilot-api/discovery/compiled"
	"github.com/pilot-api/pilot-api/discovery/feedback"
	"github.com/pilot-api/pilot-api/discovery/xds"
)

// settle notes that a proxy has acknowledged all that it should have, but for parts of
// route tables that it was found to refuse.
func (st *Stream) settle(target *compiled.Streamed) {
	if st.at == target {
		return
	}
	for _, t := range st.types() {
		if t.asked && !t.runs(st.desired(t, target)) {
			return
		}
	}
	if st.clusters.asked || st.listeners.asked {
		st.at = target
		st.settled.Store(true)
	}
}

func (st *Stream) types() [5]*subscribed {
	return [...]*subscribed{&st.clusters, &st.endpoints, &st.listeners, &st.routes, &st.secrets}
}

// desired is what the proxy should have of a type, once nothing is on its way.
func (st *Stream) desired(t *subscribed, target *compiled.Streamed) *xds.Set {
	switch t {
	case &st.clusters:
		return target.Clusters
	case &st.endpoints:
		return target.Endpoints
	case &st.listeners:
		return target.ListenersAt(st.client.proxy.IP)
	case &st.secrets:
		return st.secretsOf(target.V3Answers)
	}
	if st.proxyless {
		return st.settledTables(target)
	}
	return target.Routes
}

// state is where a type stands.
func (t *subscribed) state(desired *xds.Set) feedback.SyncState {
	switch {
	case t.refuses(desired):
		return feedback.Rejected
	case len(t.underway) > 0:
		return feedback.Sent
	case !t.owed.nothing() || !t.wasSent(desired):
		return feedback.Stale
	}
	return feedback.Synced
}

// runs reports whether the proxy has acknowledged all of what it should have of a type
// but for what certain objects are to blame for.
func (t *subscribed) runs(desired *xds.Set) bool {
	switch t.state(desired) {
	case feedback.Synced:
		return true
	case feedback.Rejected:
		return len(t.underway) == 0 && t.owed.nothing() && t.wasSent(desired) && t.refusesPartsAlone(desired)
	}
	return false
}

// refusesPartsAlone reports whether it is known of all that is refused of a set which
// parts of route tables that is, and the proxy has those tables without them.
func (t *subscribed) refusesPartsAlone(desired *xds.Set) bool {
	if t.nacks.Searching() {
		return false
	}
	for _, refused := range t.nacks.Each(t, desired) {
		if len(refused.Origins) == 0 {
			return false
		}
	}
	return true
}

// revision is the one that the proxy runs, while one is published that is not newer than
// the target.
func (st *Stream) revision(target *compiled.Streamed, published int64) int64 {
	st.settle(target)
	switch {
	case st.at == nil:
		return 0
	case st.at == target:
		return st.client.newest(target.Revision, published)
	}
	until := st.at.Until.Load()
	if end := st.at.View.Until.Load(); until == 0 || end != 0 && end < until {
		until = end
	}
	return st.client.before(st.at.View, until, target.Revision)
}

// words are why the proxy refuses something, "" when it does not.
func (t *subscribed) words(desired *xds.Set) string {
	for _, refused := range t.nacks.Each(t, desired) {
		return refused.Words
	}
	return ""
}

func (t *subscribed) refuses(desired *xds.Set) bool {
	if t.nacks.NothingNacked() {
		return false // Most of the time, of all proxies that are looked at.
	}
	for range t.nacks.Each(t, desired) {
		return true
	}
	return false
}

// noteRefusing tells those who count the proxies that refuse something.
func (st *Stream) noteRefusing() {
	target, err := st.target()
	if err != nil {
		return
	}
	does := len(st.withheld(target)) > 0
	for _, t := range st.types() {
		does = does || t.refuses(st.desired(t, target))
	}
	if st.refuses.Swap(does) != does {
		st.server.fleet.noteRefusing(st.client)
	}
}
