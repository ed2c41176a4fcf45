package discovery

import (
	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/discovery/feedback"
	"github.com/pilot-api/pilot-api/discovery/fleet"
	"github.com/pilot-api/pilot-api/mesh"
)

// Introduce notes what is known of a proxy that has asked; it is for people only.
func (s *Publisher) Introduce(node mesh.Node, a fleet.Agent) {
	if c := s.fleet.Find(node); c != nil {
		c.Introduce(a)
	}
}

// Proxies are all that are connected, by node; or those of them that some objects
// concern.
func (s *Publisher) Proxies(of ...diag.Ref) []feedback.ProxyStatus {
	return s.fleet.Statuses(s.Revision(), func(*fleet.Client) bool { return true }, of)
}

// ProxiesCalled are those of Proxies that call themselves so.
func (s *Publisher) ProxiesCalled(node string, of ...diag.Ref) []feedback.ProxyStatus {
	return s.fleet.Statuses(s.Revision(), func(c *fleet.Client) bool { return c.Node.ID == node }, of)
}

// ObjectStatuses takes a look at all proxies. What is as it was in an earlier look, nil for
// none, is shared with that.
func (s *Publisher) ObjectStatuses(before *feedback.ObjectStatuses) *feedback.ObjectStatuses {
	published, problems := s.newest.known()
	return feedback.NewObjectStatuses(meshOf(published), problems, before, func(visit func(feedback.ProxySyncState), r feedback.SyncVisitor) {
		s.fleet.EachState(s.Revision(), visit, r)
	})
}
