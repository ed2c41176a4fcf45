package discovery

import (
	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/discovery/feedback"
	"github.com/pilot-api/pilot-api/discovery/fleet"
	"github.com/pilot-api/pilot-api/mesh"
)

// Introduce notes what is known of a proxy that has asked; it is for people only.
func (p *Publisher) Introduce(node mesh.Node, a fleet.Agent) {
	if c := p.fleet.Find(node); c != nil {
		c.Introduce(a)
	}
}

// Proxies are all that are connected, by node; or those of them that some objects
// concern.
func (p *Publisher) Proxies(of ...diag.Ref) []feedback.ProxyStatus {
	return p.fleet.Statuses(p.Revision(), func(*fleet.Client) bool { return true }, of)
}

// ProxiesCalled are those of Proxies that call themselves so.
func (p *Publisher) ProxiesCalled(node string, of ...diag.Ref) []feedback.ProxyStatus {
	return p.fleet.Statuses(p.Revision(), func(c *fleet.Client) bool { return c.Node.ID == node }, of)
}

// ObjectStatuses takes a look at all proxies. What is as it was in an earlier look, nil for
// none, is shared with that.
func (p *Publisher) ObjectStatuses(before *feedback.ObjectStatuses) *feedback.ObjectStatuses {
	published, problems := p.newest.known()
	return feedback.NewObjectStatuses(meshOf(published), problems, before, func(visit func(feedback.ProxySyncState), r feedback.SyncVisitor) {
		p.fleet.EachState(p.Revision(), visit, r)
	})
}
