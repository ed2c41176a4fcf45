package discovery

import (
	"slices"
	"sync"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/discovery/compiled"
	"github.com/pilot-api/pilot-api/discovery/feedback"
	"github.com/pilot-api/pilot-api/discovery/xds"
	"github.com/pilot-api/pilot-api/internal/terminal"
	"github.com/pilot-api/pilot-api/ir"
)

// each visits how the proxy stands with each type but endpoints, which may be several
// times, and returns the last view all of which it was seen to have; nil for none.
func (h *handover) each(next *compiled.View, visit func(name string, s feedback.TypeStatus)) *compiled.View {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.held) == 0 {
		return nil
	}
	target := h.held[len(h.held)-1]
	settled := target == next && len(h.held) == 1 && !h.asked.IsZero()
	note := func(name string, s feedback.TypeStatus) {
		settled = settled && s.State == feedback.Synced
		visit(name, s)
	}
	if !h.asked.IsZero() {
		note("clusters", h.clusters.status(len(h.held) == 1))
	}
	for table, s := range h.routed {
		name := "routes"
		if table == xds.ListenerType {
			name = "listeners"
		}
		note(name, s.passing.status(s.told == target))
	}
	if settled {
		h.at.Store(next)
	}
	return h.at.Load()
}

// polls reports whether a proxy has polled.
func (h *handover) polls() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.held) > 0
}

// eachRefusal visits what the proxy refuses of what its polls are answered, by the objects
// of which that is made and what it has is not. Which of them is to blame it does not say.
func (h *handover) eachRefusal(c *client, visit func(diag.Ref, feedback.Refusal)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	blame := func(typeURL string, p *passing, fresh []diag.Ref) {
		if len(fresh) == 0 {
			fresh = []diag.Ref{{}}
		}
		for _, ref := range fresh {
			visit(ref, feedback.Refusal{Node: c.node.ID, Type: xds.NameOf(typeURL), Words: p.status(true).Error})
		}
	}
	if h.clusters.refused() && len(h.held) > 0 {
		blame(xds.ClusterType, &h.clusters, freshIn(h.held[len(h.held)-1], h.at.Load(), func(v *compiled.View) []*ir.Cluster { return v.Config.Clusters }))
	}
	for table, s := range h.routed {
		switch {
		case !s.passing.refused() || s.told == nil:
		case table == xds.ListenerType:
			blame(xds.ListenerType, &s.passing, freshIn(s.told, s.has, func(v *compiled.View) []*ir.Listener { return v.Config.Listeners }))
		default:
			blame(xds.RouteType, &s.passing, freshIn(s.told, s.has, func(v *compiled.View) []*ir.VirtualHost { return compiled.HostsOf(v, table) }))
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

// status of a type that is told the newest, or not yet.
func (p *passing) status(newest bool) feedback.TypeStatus {
	s := feedback.TypeStatus{State: feedback.Synced, Version: p.has}
	switch {
	case p.refused():
		s.State, s.Error = feedback.Rejected, "the proxy keeps version "+terminal.Line(p.has)+" instead of "+p.told+"; its log says why"
	case !newest || p.behind:
		s.State = feedback.Stale
	case p.has != p.told:
		s.State = feedback.Sent
	}
	return s
}

// mostUnproved bounds the proxies of one address that count because they said that they
// have a version, which may be invented.
const mostUnproved = 64

// isProved reports whether somebody that polls counts as a proxy. One beside a workload of
// the registry does. Anybody else must come back: with the version it was answered, or in
// v1, which has none, for what it was answered before. One that has a version at its first
// poll may have it from another replica, and so counts while there are few of the same
// address, which unproved counts.
func (c *client) isProved(unproved map[string]int) bool {
	h := &c.handover
	if h.cameBack.Load() || c.fetched.cameBack() || !c.place.Load().slot.unknown {
		return true
	}
	if !h.hasVersion.Load() {
		return false
	}
	address := ""
	if a := c.agent.Load(); a != nil {
		address = a.Address
	}
	unproved[address]++
	return unproved[address] <= mostUnproved
}

// noteVersion takes in the version that a poll carries, and what the one before was told.
func (h *handover) noteVersion(version, told string) {
	if version != "" {
		h.hasVersion.Store(true)
		if version == told {
			h.cameBack.Store(true)
		}
	}
}

// fetched is what a proxy of v1 was last answered, by type.
type fetched struct {
	mu    sync.Mutex
	views map[string]*compiled.View
	again bool // one of them a second time
}

// cameBack reports whether the proxy has fetched something again.
func (f *fetched) cameBack() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.again
}

func (f *fetched) note(name string, v *compiled.View) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.views == nil {
		f.views = map[string]*compiled.View{}
	}
	f.again = f.again || f.views[name] != nil
	f.views[name] = v
}

// each visits how the proxy stands with each type.
func (f *fetched) each(target *compiled.View, visit func(name string, s feedback.TypeStatus)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for name, v := range f.views {
		state := feedback.Fetched
		if v != target {
			state = feedback.Stale
		}
		visit(name, feedback.TypeStatus{State: state})
	}
}

// oldest is the one of the views that came first, nil for none, and whether all are
// the one that they should be.
func (f *fetched) oldest(target *compiled.View) (oldest *compiled.View, newest bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	newest = true
	for _, v := range f.views {
		newest = newest && v == target
		if oldest == nil || v.Serial < oldest.Serial {
			oldest = v
		}
	}
	return oldest, newest
}
