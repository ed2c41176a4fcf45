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

// EachType calls visit with the proxy's sync state for each type. It may call visit several
// times for a type. It returns the newest configuration that the proxy's polls have fully
// confirmed, or nil for none. answers are those of the view of next, and ip is the address of
// the proxy.
func (t *Transition) EachType(next *compiled.Polled, answers *compiled.V3Answers, ip string, visit func(name string, s feedback.TypeStatus)) *compiled.Polled {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.held) == 0 {
		return nil
	}
	target := t.held[len(t.held)-1]
	settled := target == next.View && len(t.held) == 1 && !t.asked.IsZero()
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
	if t.secrets.asked {
		note("secrets", t.secrets.status(answers.Secrets))
	}
	if t.endpoints.asked {
		note("endpoints", t.endpoints.status(next.Endpoints()))
	}
	if name, words := t.unasked(next, answers, ip); words != "" {
		t.at.CompareAndSwap(next, nil)
		note(name, feedback.TypeStatus{State: feedback.Stale, Error: "the proxy has not polled for " + words})
	}
	if settled {
		t.at.Store(next)
	}
	return t.at.Load()
}

// unasked returns what the proxy should have and does not poll for: the name of its type, and
// words; "" if there is nothing.
func (t *Transition) unasked(next *compiled.Polled, answers *compiled.V3Answers, ip string) (name, words string) {
	polls := func(name string) bool { return t.routed[name] != nil }
	l := t.routed[xds.ListenerType]
	table := answers.UnaskedTable(ip, polls, func(string) bool { return l != nil && l.passing.refused() })
	switch {
	case t.asked.IsZero():
		return "clusters", "clusters"
	case next.HasEndpoints() && !t.endpoints.asked && !t.clusters.refused():
		return "endpoints", "endpoints"
	case len(next.View.Config.Listeners) > 0 && l == nil:
		return "listeners", "listeners"
	case table != "":
		return "routes", "route table " + table
	}
	return "", ""
}

// HasPolled reports whether a proxy has polled.
func (t *Transition) HasPolled() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.held) > 0
}

// EachRefusal visits the answers that the proxy refuses. A poll does not say which object
// is to blame. So EachRefusal visits the objects of the answer that are not in the
// configuration of the proxy.
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
		blame(xds.ClusterType, &t.clusters, freshIn(t.held[len(t.held)-1], t.ackedView(), func(v *compiled.View) []*ir.Cluster { return v.Config.Clusters }))
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
	for _, s := range []*shown{&t.endpoints, &t.secrets} {
		if s.over.refused() && len(t.held) > 0 {
			blame(s.resources.TypeURL, &s.over, t.held[len(t.held)-1].OriginsOf(s.resources.TypeURL, s.overSubject, "", nil))
		}
	}
}

// ackedView is the view of what it was last seen to have all of, nil for none.
func (t *Transition) ackedView() *compiled.View {
	if at := t.at.Load(); at != nil {
		return at.View
	}
	return nil
}

// traced is a part of a configuration. It is the same value as long as its content is the
// same.
type traced interface {
	comparable
	EachOrigin(visit func(diag.Ref))
}

// freshIn returns the objects of those parts of a view that another view (nil for none)
// lacks.
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

// status returns the state of a type; newest reports whether the newest version was sent.
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

// noteVersion records the version that a poll carries, and the version that the last poll
// was answered with.
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

// CameBack reports whether a poll carried the version of the answer before it.
func (t *Transition) CameBack() bool { return t.cameBack.Load() }

// Pace returns the time between the last two polls for clusters, 0 before the second one.
func (t *Transition) Pace() time.Duration { return time.Duration(t.pace.Load()) }

// Acked returns the newest configuration that the proxy's polls have fully confirmed, or
// nil for none.
func (t *Transition) Acked() *compiled.Polled { return t.at.Load() }

// NoteEndpoints records a poll for some endpoint sets. version is the one in the poll, and
// answer that of the present endpoints. find returns the present resource of a name, or nil
// for none.
func (t *Transition) NoteEndpoints(of *xds.Set, names []string, version, answer string, find func(string) *xds.Resource) {
	t.noteShown(&t.endpoints, of, names, version, answer, find)
	t.forgetEmptied(names)
}

// NoteSecrets is NoteEndpoints for secrets.
func (t *Transition) NoteSecrets(of *xds.Set, names []string, version, answer string) {
	t.noteShown(&t.secrets, of, names, version, answer, of.Named)
}

func (t *Transition) noteShown(s *shown, of *xds.Set, names []string, version, answer string, find func(string) *xds.Resource) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(names) == 0 {
		for _, r := range of.Sorted {
			names = append(names, r.Name)
		}
	}
	s.note(of, names, version, answer, find)
	t.noteRefusing()
}

// Hold calls do while the other polls of the proxy wait, as during an answer.
func (t *Transition) Hold(do func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	do()
}
