package feedback

import (
	"cmp"
	"slices"
	"strings"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/discovery/compiled"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// ObjectStatuses has the status of all objects at the proxies that are connected to this
// replica, at one moment (docs/decisions/019-feedback.md).
type ObjectStatuses struct {
	// Revision is that of the published configuration, 0 before there is one.
	Revision int64
	// Objects are those that the configuration was compiled from, in no order. The slice is
	// shared.
	Objects []*schema.Object
	// Returning counts the earlier proxies that are still awaited and whose objects are not
	// known yet.
	Returning int

	mesh     *mesh.Snapshot
	groups   []viewGroup
	groupOf  map[viewTransition]int // index in groups
	affected map[diag.Ref][]int     // indexes of groups, by the objects in their configuration

	workloads Workloads
	groupsAt  map[string][]int // indexes of groups, by the hosts of workloads that they have clusters of
	refusals  map[diag.Ref][]Refusal
	problems  diag.List // in the order of CompareProblems
}

// ObjectStatus is the status of one object.
type ObjectStatus struct {
	// Proxies counts the connected proxies that have the object in their configuration, or
	// should have. Running counts those of them that run its revision and refuse nothing of
	// it.
	Proxies, Running int
	// Fetched counts the v1 proxies that have fetched its revision. The server cannot know
	// whether they run it, so Running does not include them.
	Fetched int
	// Away counts the proxies that were lost a short while ago. Proxies includes them and
	// Running does not, because the server does not know what they run.
	Away int
	// Refusals of resources that come from the object, sorted by node. The slice is shared.
	Refusals []Refusal
	// Problems are those of the object in the published configuration. The slice is shared.
	Problems diag.List
}

// viewTransition is a proxy's transition from the view that it has to the one that it
// should have. from is nil if the proxy is current or has none.
type viewTransition struct {
	from, to *compiled.View
	fetches  bool // over v1: what it has is what it has fetched
	away     bool // it is not connected, and awaited
}

// eachObject visits the objects in either view. The proxy may still run objects that are
// only in the old view.
func (c viewTransition) eachObject(visit func(diag.Ref)) {
	to := c.to.Origins()
	for ref := range to {
		visit(ref)
	}
	if c.from == nil {
		return
	}
	for ref := range c.from.Origins() {
		if _, both := to[ref]; !both {
			visit(ref)
		}
	}
}

// viewGroup is the proxies of one transition: the revision that each has, in order, and
// by object the revisions of those that refuse something of it.
type viewGroup struct {
	viewTransition
	revisions []int64
	refusing  map[diag.Ref][]int64 // nil for most
}

// add adds one proxy: the revision that it runs, and the objects whose resources it
// refuses.
func (c *viewGroup) add(revision int64, refuses []diag.Ref) {
	c.revisions = append(c.revisions, revision)
	for _, ref := range refuses {
		if c.refusing == nil {
			c.refusing = map[diag.Ref][]int64{}
		}
		c.refusing[ref] = append(c.refusing[ref], revision)
	}
}

// running returns how many proxies run an object at a revision or a later one, and refuse
// nothing of it.
func (c *viewGroup) running(ref diag.Ref, revision int64) int {
	behind, _ := slices.BinarySearch(c.revisions, revision)
	running := len(c.revisions) - behind
	for _, runs := range c.refusing[ref] {
		if runs >= revision {
			running--
		}
	}
	return running
}

// NewObjectStatuses computes the status of each published object over the proxies that
// eachProxy visits. published is nil if nothing is published; at are its workloads.
// problems are in the order of CompareProblems. The result shares all unchanged statuses
// with before, the result of an earlier call, which may be nil.
func NewObjectStatuses(published *mesh.Snapshot, at Workloads, problems diag.List, before *ObjectStatuses, eachProxy func(func(ProxySyncState), SyncVisitor)) *ObjectStatuses {
	if before == nil {
		before = &ObjectStatuses{}
	}
	out := &ObjectStatuses{refusals: map[diag.Ref][]Refusal{}, problems: problems, workloads: at}
	out.configured(published, before)
	out.groupProxies(eachProxy, before)
	return out
}

// configured sets the published configuration; nil means that nothing is published.
func (out *ObjectStatuses) configured(published *mesh.Snapshot, before *ObjectStatuses) {
	if published == nil {
		return
	}
	out.mesh, out.Revision, out.Objects = published, published.Revision, before.Objects
	if before.mesh != out.mesh {
		out.Objects = compiled.ObjectsOf(out.mesh)
	}
}

// groupProxies groups the proxies by the views that they have and should have.
func (out *ObjectStatuses) groupProxies(eachProxy func(func(ProxySyncState), SyncVisitor), before *ObjectStatuses) {
	out.groups, out.groupOf = before.empty()
	var refuses []diag.Ref // the group that is visited next
	eachProxy(func(one ProxySyncState) {
		i := out.groupFor(one)
		out.groups[i].add(one.Revision, refuses)
		refuses = refuses[:0]
	}, SyncVisitor{Refusal: func(ref diag.Ref, r Refusal) {
		out.refusals[ref] = append(out.refusals[ref], r)
		if !slices.Contains(refuses, ref) {
			refuses = append(refuses, ref)
		}
	}})
	out.affected = out.dropEmptyGroups(before.affected, len(before.groups))
	for _, c := range out.groups {
		slices.Sort(c.revisions)
	}
	out.findGroupsAt()
	for _, all := range out.refusals {
		slices.SortFunc(all, func(a, b Refusal) int {
			return cmp.Or(strings.Compare(a.Node, b.Node), strings.Compare(a.Type, b.Type), strings.Compare(a.Words, b.Words))
		})
	}
}

// findGroupsAt notes which groups have clusters of the hosts of workloads.
func (out *ObjectStatuses) findGroupsAt() {
	out.groupsAt = map[string][]int{}
	find := func(host string) {
		if _, known := out.groupsAt[host]; known {
			return
		}
		at := []int{}
		for i, c := range out.groups {
			if c.hasHost(host) {
				at = append(at, i)
			}
		}
		out.groupsAt[host] = at
	}
	for _, hosts := range out.workloads.hosts {
		for _, host := range hosts {
			find(host)
		}
	}
	for _, former := range out.workloads.former {
		for _, f := range former {
			find(f.host)
		}
	}
}

// hasHost reports whether either view has clusters of a service.
func (c viewTransition) hasHost(host string) bool {
	_, has := c.to.Hosts()[host]
	if !has && c.from != nil {
		_, has = c.from.Hosts()[host]
	}
	return has
}

// groupFor returns the index of a proxy's group, of a new one if need be.
func (out *ObjectStatuses) groupFor(one ProxySyncState) int {
	c := viewTransition{to: one.View, fetches: one.Transport == OverV1, away: one.Away}
	if one.At != one.View {
		c.from = one.At
	}
	i, known := out.groupOf[c]
	if !known {
		i = len(out.groups)
		out.groupOf[c] = i
		out.groups = append(out.groups, viewGroup{viewTransition: c})
	}
	return i
}

// empty returns the groups without proxies, and the index of each.
func (s *ObjectStatuses) empty() ([]viewGroup, map[viewTransition]int) {
	crews, places := make([]viewGroup, len(s.groups)), make(map[viewTransition]int, len(s.groups))
	for i, c := range s.groups {
		crews[i], places[c.viewTransition] = viewGroup{viewTransition: c.viewTransition, revisions: make([]int64, 0, len(c.revisions))}, i
	}
	return crews, places
}

// dropEmptyGroups drops the groups without proxies, and returns the groups that each object
// affects. affected has this result for the first known groups; the other groups are looked
// at.
func (out *ObjectStatuses) dropEmptyGroups(concern map[diag.Ref][]int, known int) map[diag.Ref][]int {
	gone := func(c viewGroup) bool { return len(c.revisions) == 0 }
	if len(out.groups) == known && !slices.ContainsFunc(out.groups, gone) {
		return concern
	}
	old := out.groups
	places := make([]int, len(old))
	out.groups = nil
	for i, c := range old {
		if places[i] = len(out.groups); gone(c) {
			delete(out.groupOf, c.viewTransition)
			continue
		}
		out.groupOf[c.viewTransition] = len(out.groups)
		out.groups = append(out.groups, c)
	}
	next := make(map[diag.Ref][]int, len(concern))
	for ref, crews := range concern {
		stay := make([]int, 0, len(crews))
		for _, i := range crews {
			if !gone(old[i]) {
				stay = append(stay, places[i])
			}
		}
		if len(stay) > 0 {
			next[ref] = stay
		}
	}
	for i, c := range old[known:] {
		c.eachObject(func(ref diag.Ref) { next[ref] = append(next[ref], places[known+i]) })
	}
	return next
}

// Of returns the status of an object at a revision.
func (s *ObjectStatuses) Of(ref diag.Ref, revision int64) ObjectStatus {
	out := ObjectStatus{Problems: problemsOf(s.problems, ref), Refusals: s.refusals[ref]}
	for _, i := range s.groupsOf(ref) {
		out.Proxies += len(s.groups[i].revisions)
		switch running := s.groups[i].running(ref, revision); {
		case s.groups[i].away:
			out.Away += len(s.groups[i].revisions)
		case s.groups[i].fetches:
			out.Fetched += running
		default:
			out.Running += running
		}
	}
	return out
}

// groupsOf returns the indexes of the groups that an object affects.
func (s *ObjectStatuses) groupsOf(ref diag.Ref) []int {
	hosts, former := s.workloads.hosts[ref], s.workloads.former[ref]
	if len(hosts)+len(former) == 0 {
		return s.affected[ref]
	}
	all := slices.Clone(s.affected[ref])
	for _, host := range hosts {
		all = append(all, s.groupsAt[host]...)
	}
	for _, f := range former {
		for _, i := range s.groupsAt[f.host] {
			if s.groups[i].revisions[0] < f.until {
				all = append(all, i)
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
