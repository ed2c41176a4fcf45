package stream

import (
	"slices"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/discovery/compiled"
	"github.com/pilot-api/pilot-api/discovery/feedback"
	"github.com/pilot-api/pilot-api/discovery/nack"
	"github.com/pilot-api/pilot-api/discovery/xds"
)

// settle notes that a proxy has acked all that it should have, except what it is known to
// nack and known objects are to blame for.
func (st *Stream) settle(target *compiled.Streamed) {
	lacks := st.unasked(target).of != nil
	if lacks && st.acked != nil && st.findUnasked(st.acked) == st.findUnasked(target) {
		st.acked = nil // The proxy has unsubscribed from it.
	}
	if lacks || st.acked == target || !st.runsAllAsked(target) {
		return
	}
	if st.clusters.asked || st.listeners.asked || st.onlySecrets && st.secrets.asked {
		st.acked = target
		st.settled.Store(true)
	}
}

// runsAllAsked reports whether the proxy has acked all that it should have of the types that it
// subscribes to, except what known objects are to blame for.
func (st *Stream) runsAllAsked(target *compiled.Streamed) bool {
	for _, t := range st.subscriptions() {
		if t.asked && !st.runs(t, target) {
			return false
		}
	}
	return true
}

func (st *Stream) subscriptions() [5]*subscription {
	return [...]*subscription{&st.clusters, &st.endpoints, &st.listeners, &st.routes, &st.secrets}
}

// desired returns what the proxy should have of a type in the end.
func (st *Stream) desired(t *subscription, target *compiled.Streamed) *xds.Set {
	switch t {
	case &st.clusters:
		return target.ClustersBeside(st.standIns(target))
	case &st.endpoints:
		return target.Endpoints
	case &st.listeners:
		return target.ListenersAt(st.proxy.Address())
	case &st.secrets:
		return st.secretsOf(target.V3Answers)
	}
	if st.proxyless {
		return st.settledTables(target)
	}
	return st.routesOf(target)
}

// standIns are the views of what the proxy keeps in place of what it nacks, oldest first.
// Their clusters stay.
func (st *Stream) standIns(target *compiled.Streamed) (views []*compiled.View) {
	add := func(v *compiled.View) {
		if v != nil && v != target.View && !slices.Contains(views, v) {
			views = append(views, v)
		}
	}
	st.listeners.nacks.MaybeAt(add)
	st.routes.nacks.MaybeAt(add)
	sortViews(views)
	return views
}

// state is where a type stands.
func (t *subscription) state(desired *xds.Set) feedback.SyncState {
	switch {
	case t.refuses(desired):
		return feedback.Rejected
	case len(t.inFlight) > 0:
		return feedback.Sent
	case !t.pending.nothing() || t.closing || !t.wasSent(desired):
		return feedback.Stale
	}
	return feedback.Synced
}

// runs reports whether the proxy has acked all that it should have of a type, except what
// known objects are to blame for.
func (st *Stream) runs(t *subscription, target *compiled.Streamed) bool {
	desired := st.desired(t, target)
	switch t.state(desired) {
	case feedback.Synced:
		return true
	case feedback.Rejected:
		return len(t.inFlight) == 0 && t.pending.nothing() && !t.closing && t.wasSent(desired) && st.refusesKnownParts(t, target)
	}
	return false
}

// refusesKnownParts reports whether the proxy has acked all of a type except clusters,
// listeners and parts of route tables whose objects are known.
func (st *Stream) refusesKnownParts(t *subscription, target *compiled.Streamed) bool {
	if t.nacks.Searching() {
		return false
	}
	for name, refused := range t.nacks.Each(t, st.desired(t, target)) {
		if len(refused.Origins) == 0 && (!t.Wild() || name == "" || len(st.blamed(t, target, name, refused)) == 0) {
			return false
		}
	}
	return true
}

// blamed returns the objects that do not take effect because the proxy nacks a resource,
// none if they are unknown.
func (st *Stream) blamed(t *subscription, target *compiled.Streamed, name string, refused *nack.Nacked) []diag.Ref {
	if len(refused.Origins) > 0 {
		return refused.Origins
	}
	ip := st.proxy.Address()
	refs := target.View.OriginsOf(t.typeURL, name, ip, refused.View)
	if name == "" {
		return refs
	}
	switch t {
	case &st.clusters:
		if t.nacks.Lacks(name) {
			refs = append(refs, target.View.ObjectsLeadingTo(name, ip)...)
		}
	case &st.listeners:
		// What the listener says counts by its tables, which are asked for by name.
		refs = append(refs, target.View.ObjectsBehind(name, ip, func(table string) bool { return !st.routes.Wants(table) })...)
	}
	return diag.UniqueRefs(refs)
}

// revision returns the one that the proxy runs. published is not newer than the target.
func (st *Stream) revision(target *compiled.Streamed, published int64) int64 {
	st.settle(target)
	switch {
	case st.acked == nil:
		return 0
	case st.acked == target:
		return st.proxy.RevisionInEffect(target.View, published)
	}
	return st.proxy.RevisionBefore(st.acked.View, st.acked.ReplacedAt(), target.Since)
}

// words returns why the proxy refuses something, or "" if it does not.
func (t *subscription) words(desired *xds.Set) string {
	for _, refused := range t.nacks.Each(t, desired) {
		return refused.Words
	}
	return ""
}

func (t *subscription) refuses(desired *xds.Set) bool {
	if t.nacks.NothingNacked() {
		return false // This is the usual case.
	}
	for range t.nacks.Each(t, desired) {
		return true
	}
	return false
}

// noteRefusing reports to Proxy.NacksChanged when the stream begins or ceases to refuse
// something.
func (st *Stream) noteRefusing() {
	target, err := st.target()
	if err != nil {
		return
	}
	does := len(st.withheld(target)) > 0
	for _, t := range st.subscriptions() {
		does = does || t.refuses(st.desired(t, target))
	}
	if st.refuses.Swap(does) != does {
		st.proxy.NacksChanged()
	}
}

// Transport returns how the proxy gets its configuration.
func (st *Stream) Transport() feedback.Transport {
	switch {
	case st.delta:
		return feedback.OverDelta
	case st.proxyless:
		return feedback.OverGRPC
	}
	return feedback.OverADS
}

// SyncState returns the sync state of the proxy. It has no view if there is none for the
// proxy yet.
func (st *Stream) SyncState(r feedback.SyncVisitor) feedback.ProxySyncState {
	published := st.shared.Revision()
	st.mu.Lock()
	defer st.mu.Unlock()
	out := feedback.ProxySyncState{Transport: st.Transport()}
	target, err := st.target()
	if err != nil {
		return out
	}
	out.View, out.Revision = target.View, st.revision(target, published)
	if st.acked != nil {
		out.At = st.acked.View
	}
	for _, t := range st.subscriptions() {
		if !t.asked {
			continue
		}
		desired := st.desired(t, target)
		s := feedback.TypeStatus{State: t.state(desired)}
		if r.State != nil {
			s.Error = t.words(desired)
			if t.acked.Set != nil {
				s.Version = t.acked.Set.Version
			}
		}
		out.Note(r, xds.NameOf(t.typeURL), s)
	}
	if m := st.unasked(target); m.of != nil && st.runsAllAsked(target) {
		out.Note(r, xds.NameOf(m.of.typeURL), feedback.TypeStatus{State: feedback.Stale, Error: "the proxy has not subscribed to " + m.what})
	}
	out.NoteWithheld(r, st.withheld(target))
	out.State = feedback.OrSent(out.State)
	if out.State == feedback.Rejected && r.Refusal != nil {
		st.eachRefusalLocked(target, r.Refusal)
	}
	return out
}

// conclude records which changes the proxy has accepted, if nothing is pending.
func (st *Stream) conclude(target *compiled.Streamed) {
	if !st.awaited.Pending.Load() {
		return
	}
	refuses := false
	for _, t := range st.subscriptions() {
		switch desired := st.desired(t, target); {
		case !t.asked:
		case len(t.inFlight) > 0:
			return
		case t.state(desired) == feedback.Rejected:
			refuses = true
		case t.state(desired) != feedback.Synced:
			return
		}
	}
	if refuses {
		st.shared.Convergence.Leave(&st.awaited, target.Revision)
	} else {
		st.shared.Convergence.Accept(&st.awaited, target.Revision)
	}
}

// EachRefusal visits the resources that the proxy nacks, and the secrets that the server
// withholds from it, with the objects behind them. The zero Ref stands for an unknown
// object.
func (st *Stream) EachRefusal(visit func(diag.Ref, feedback.Refusal)) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if target, err := st.target(); err == nil {
		st.eachRefusalLocked(target, visit)
	}
}

func (st *Stream) eachRefusalLocked(target *compiled.Streamed, visit func(diag.Ref, feedback.Refusal)) {
	for _, t := range st.subscriptions() {
		for name, refused := range t.nacks.Each(t, st.desired(t, target)) {
			refs := st.blamed(t, target, name, refused)
			if len(refs) == 0 {
				refs = []diag.Ref{{}}
			}
			for _, ref := range refs {
				visit(ref, feedback.Refusal{Node: st.proxy.ID(), Type: xds.NameOf(t.typeURL), Words: refused.Words})
			}
		}
	}
	feedback.EachWithheld(st.proxy.ID(), st.withheld(target), target.View.Config, visit)
}
