package discovery

import (
	"slices"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/discovery/feedback"
	"github.com/pilot-api/pilot-api/discovery/fleet"
	"github.com/pilot-api/pilot-api/mesh"
)

// Introduce records the program and address of a proxy that has sent a request. They are
// only for display.
func (p *Publisher) Introduce(node mesh.Node, a fleet.Agent) {
	if c := p.fleet.Find(node); c != nil {
		c.Introduce(a)
	}
}

// Proxies returns the connected proxies by node: all, or those that some objects concern.
func (p *Publisher) Proxies(of ...diag.Ref) []feedback.ProxyStatus {
	return p.fleet.Statuses(p.Revision(), func(*fleet.Client) bool { return true }, p.subjects(of))
}

// ProxiesCalled returns those of Proxies whose node is given.
func (p *Publisher) ProxiesCalled(node string, of ...diag.Ref) []feedback.ProxyStatus {
	return p.fleet.Statuses(p.Revision(), func(c *fleet.Client) bool { return c.Node.ID == node }, p.subjects(of))
}

// Disconnected returns the proxies that were connected and are connected to no replica now.
// Unless node is "", it returns only those with that node id. If objects are given, it
// returns the proxies that they concern, and the proxies whose configuration is no longer
// known.
func (p *Publisher) Disconnected(node string, of ...diag.Ref) []feedback.ProxyStatus {
	var all []feedback.ProxyStatus
	subjects := p.subjects(of)
	for _, one := range p.Absent() {
		if node != "" && one.Node.ID != node {
			continue
		}
		if c := p.fleet.Find(one.Node); c != nil && !subjects.None() {
			if state := (feedback.ProxySyncState{View: c.View()}); state.View != nil && !state.Concerns(subjects) {
				continue
			}
		}
		status := one.Status()
		status.Namespace, _ = p.NamespaceOf(one.Node) // A node that says nothing is in none.
		all = append(all, status)
	}
	return all
}

func (p *Publisher) subjects(of []diag.Ref) feedback.Subjects {
	_, workloads, _ := p.newest.known()
	return workloads.Subjects(of)
}

// ObjectStatuses visits all proxies. The result shares unchanged statuses with an earlier
// result, which may be nil.
func (p *Publisher) ObjectStatuses(before *feedback.ObjectStatuses) *feedback.ObjectStatuses {
	published, workloads, problems := p.newest.known()
	// A proxy that comes here meanwhile counts twice for a moment, and never not at all.
	returning := p.returningFromOthers()
	out := feedback.NewObjectStatuses(meshOf(published), workloads, problems, before, func(visit func(feedback.ProxySyncState), r feedback.SyncVisitor) {
		own := p.fleet.EachCounted(p.Revision(), p.opts.Others.Has, visit, r)
		returning += len(slices.DeleteFunc(own, p.opts.Others.Has))
	})
	out.Returning = returning
	return out
}
