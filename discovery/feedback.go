package discovery

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/discovery/compiled"
	"github.com/pilot-api/pilot-api/discovery/feedback"
	"github.com/pilot-api/pilot-api/discovery/stream"
	"github.com/pilot-api/pilot-api/mesh"
)

// Agent is what is known of an Envoy beside its identity.
type Agent struct {
	Version string // of the Envoy, "" when it is not told
	Address string // that it calls from
}

// ThisMachine is the address of a proxy that asks over a socket of the server's.
const ThisMachine = "localhost"

// Introduce notes what is known of a proxy that has asked; it is for people only.
func (s *Publisher) Introduce(node mesh.Node, a Agent) {
	if c := s.fleet.find(node); c != nil {
		c.introduce(a)
	}
}

func (c *client) introduce(a Agent) {
	if known := c.agent.Load(); known == nil || *known != a {
		c.agent.Store(&a)
	}
}

// pollPatience is how long ago the last poll of a proxy may be that counts as
// connected, beside three times its own pace.
const pollPatience = 30 * time.Second

// Proxies are all that are connected, by node; or those of them that some objects
// concern.
func (s *Publisher) Proxies(of ...diag.Ref) []feedback.ProxyStatus {
	return s.statuses(func(*client) bool { return true }, of)
}

// ProxiesCalled are those of Proxies that call themselves so.
func (s *Publisher) ProxiesCalled(node string, of ...diag.Ref) []feedback.ProxyStatus {
	return s.statuses(func(c *client) bool { return c.node.ID == node }, of)
}

func (s *Publisher) statuses(meant func(*client) bool, of []diag.Ref) []feedback.ProxyStatus {
	var all []feedback.ProxyStatus
	for _, p := range s.fleet.present() {
		if !meant(p.client) {
			continue
		}
		for _, st := range p.streams {
			all = p.tell(all, of, st.Since(), st.SyncState)
		}
		if len(p.streams) == 0 && s.fleet.polledLately(p.client) {
			all = p.tell(all, of, s.made.Add(p.joined), func(r feedback.SyncVisitor) feedback.ProxySyncState { return s.stanceByPolls(p.client, r) })
		}
	}
	slices.SortFunc(all, func(a, b feedback.ProxyStatus) int {
		return cmp.Or(strings.Compare(a.Node, b.Node), a.ConnectedSince.Compare(b.ConnectedSince))
	})
	return all
}

// tell adds how a proxy stands, unless that is asked of some objects and they are none
// of its concern.
func (c *client) tell(all []feedback.ProxyStatus, of []diag.Ref, since time.Time, stand func(feedback.SyncVisitor) feedback.ProxySyncState) []feedback.ProxyStatus {
	p := c.introduced()
	p.ConnectedSince = since
	one := stand(feedback.SyncVisitor{State: p.Note})
	if len(of) > 0 && !one.Concerns(of) {
		return all
	}
	if len(p.Types) > 0 && one.Transport == feedback.OverREST {
		p.Note("endpoints", feedback.TypeStatus{State: feedback.Fetched})
	}
	p.Transport, p.Revision = one.Transport, one.Revision
	return append(all, p)
}

// polledLately reports whether a proxy that is on no stream is connected. One that left
// its stream is gone unless it polls.
func (f *fleet) polledLately(c *client) bool {
	seen := c.seen.Load()
	return seen != c.left.Load() && f.age()-time.Duration(seen) <= max(pollPatience, 3*c.handover.Pace())
}

// connected are the proxies that are on a stream, or poll, by node.
func (s *Publisher) connected() (all []*client) {
	for _, c := range s.fleet.present() {
		if len(c.streams) > 0 || s.fleet.polledLately(c.client) {
			all = append(all, c.client)
		}
	}
	slices.SortFunc(all, func(a, b *client) int { return strings.Compare(a.node.ID, b.node.ID) })
	return all
}

func (c *client) introduced() feedback.ProxyStatus {
	p := feedback.ProxyStatus{Node: c.node.ID, Role: c.proxy.Role, Types: map[string]feedback.TypeStatus{}}
	if a := c.agent.Load(); a != nil {
		p.EnvoyVersion, p.Address = a.Version, a.Address
	}
	return p
}

// runs is the revision that a proxy runs which is at a view and should have another
// one, while one is published that is not newer than the latter.
func (c *client) runs(at, target *compiled.View, published int64) int64 {
	switch {
	case at == nil || target == nil:
		return 0
	case at == target:
		return c.newest(at.Revision, published)
	}
	return c.before(at, at.Until.Load(), target.Revision)
}

// newest is the revision that a proxy runs which has all that it is told, first at a
// revision: the one published, unless it is told what was before.
func (c *client) newest(first, published int64) int64 {
	if kept := c.keptSince(); kept > 0 {
		return kept - 1
	}
	return max(published, first)
}

// before is the last revision of a view, or of what it is told as, that was replaced at
// until, 0 for not yet. The proxy may have left it for another one: when it came to its
// place, or not later than for what became next.
func (c *client) before(at *compiled.View, until, next int64) int64 {
	if moved := c.place.Load().revision; moved > at.Revision && (until == 0 || moved < until) {
		until = moved
	}
	return cmp.Or(until, next) - 1
}

func (f *fleet) streamsOf(c *client) []*stream.Stream {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return slices.Clone(c.streams)
}
