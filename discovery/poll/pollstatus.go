package poll

import (
	"slices"
	"time"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/discovery/compiled"
	"github.com/pilot-api/pilot-api/discovery/feedback"
	"github.com/pilot-api/pilot-api/discovery/xds"
	"github.com/pilot-api/pilot-api/internal/terminal"
	"github.com/pilot-api/pilot-api/ir"
)

// EachType visits how the proxy stands with each type but endpoints, which may be several
// times, and returns the last view all of which it was seen to have; nil for none.
func (t *Transition) EachType(next *compiled.View, visit func(name string, s feedback.TypeStatus)) *compiled.View {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.held) == 0 {
		return nil
	}
	target := t.held[len(t.held)-1]
	settled := target == next && len(t.held) == 1 && !t.asked.IsZero()
	note := func(name string, s feedback.TypeStatus) {
		settled = settled && s.State == feedback.Synced
		visit(name, s)
	}
	if !t.asked.IsZero() {
		note("clusters", t.clusters.status(len(t.held) == 1))
	}
	for table, s := range t.routed {
		name := "routes"
		if table == xds.ListenerType {
			name = "listeners"
		}
		note(name, s.passing.status(s.sent == target))
	}
	if settled {
		t.at.Store(next)
	}
	return t.at.Load()
}

// HasPolled reports whether a proxy has polled.
func (t *Transition) HasPolled() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.held) > 0
}

// EachRefusal visits what the proxy refuses of what its polls are answered, by the objects
// of which that is made and what it has is not. Which of them is to blame it does not say.
func (t *Transition) EachRefusal(node string, visit func(diag.Ref, feedback.Refusal)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	blame := func(typeURL string, p *passing, fresh []diag.Ref) {
		if len(fresh) == 0 {
			fresh = []diag.Ref{{}}
		}
		for _, ref := range fresh {
			visit(ref, feedback.Refusal{Node: node, Type: xds.NameOf(typeURL), Words: p.status(true).Error})
		}
	}
	if t.clusters.refused() && len(t.held) > 0 {
		blame(xds.ClusterType, &t.clusters, freshIn(t.held[len(t.held)-1], t.at.Load(), func(v *compiled.View) []*ir.Cluster { return v.Config.Clusters }))
	}
	for table, s := range t.routed {
		switch {
		case !s.passing.refused() || s.sent == nil:
		case table == xds.ListenerType:
			blame(xds.ListenerType, &s.passing, freshIn(s.sent, s.acked, func(v *compiled.View) []*ir.Listener { return v.Config.Listeners }))
		default:
			blame(xds.RouteType, &s.passing, freshIn(s.sent, s.acked, func(v *compiled.View) []*ir.VirtualHost { return compiled.HostsOf(v, table) }))
		}
	}
}

// traced is a part of a configuration, which stays the same value as long as it says the
// same.
type traced interface {
	comparable
	EachOrigin(visit func(diag.Ref))
}

// freshIn are the objects that parts of a view came from which another one, nil for
// none, has not.
func freshIn[P traced](v, older *compiled.View, parts func(*compiled.View) []P) []diag.Ref {
	known := map[P]bool{}
	if older != nil {
		for _, p := range parts(older) {
			known[p] = true
		}
	}
	var refs []diag.Ref
	for _, p := range parts(v) {
		if known[p] {
			continue
		}
		p.EachOrigin(func(ref diag.Ref) {
			if ref != (diag.Ref{}) && !slices.Contains(refs, ref) {
				refs = append(refs, ref)
			}
		})
	}
	return refs
}

// status of a type of which the newest was sent, or not yet.
func (p *passing) status(newest bool) feedback.TypeStatus {
	s := feedback.TypeStatus{State: feedback.Synced, Version: p.acked}
	switch {
	case p.refused():
		s.State, s.Error = feedback.Rejected, "the proxy keeps version "+terminal.Line(p.acked)+" instead of "+p.sent+"; its log says why"
	case !newest || p.behind:
		s.State = feedback.Stale
	case p.acked != p.sent:
		s.State = feedback.Sent
	}
	return s
}

// noteVersion takes in the version that a poll carries, and what the one before was answered.
func (t *Transition) noteVersion(version, sent string) {
	if version != "" {
		t.hasVersion.Store(true)
		if version == sent {
			t.cameBack.Store(true)
		}
	}
}

// HasVersion reports whether a poll carried a version.
func (t *Transition) HasVersion() bool { return t.hasVersion.Load() }

// CameBack reports whether a poll carried the version that the one before was answered.
func (t *Transition) CameBack() bool { return t.cameBack.Load() }

// Pace is the time between the last two polls for clusters, 0 before there were two.
func (t *Transition) Pace() time.Duration { return time.Duration(t.pace.Load()) }

// Acked returns the last view all of which the proxy was seen to have, nil for none.
func (t *Transition) Acked() *compiled.View { return t.at.Load() }

// Hold does something while a poll would be answered: other polls of the proxy wait.
func (t *Transition) Hold(do func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	do()
}
