package discovery

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/discovery/compiled"
	"github.com/pilot-api/pilot-api/mesh"
)

// Transport is how a proxy gets its configuration.
type Transport string

// Transports, the names that a bootstrap has for them (envoy.APIs).
const (
	OverDelta Transport = "delta"
	OverADS   Transport = "ads"
	OverREST  Transport = "rest"
	OverGRPC  Transport = "grpc" // without a proxy, over ads
	OverV1    Transport = "v1"
)

// SyncState is where a proxy stands with one type (docs/decisions/019-feedback.md).
type SyncState string

const (
	Synced   SyncState = "SYNCED"   // acknowledged, nothing newer is due
	Sent     SyncState = "SENT"     // on its way
	Stale    SyncState = "STALE"    // something newer is due and was not sent yet
	Rejected SyncState = "REJECTED" // refused
	Fetched  SyncState = "FETCHED"  // asked for; whether it was taken cannot be known
)

// TypeStatus is one type of one proxy.
type TypeStatus struct {
	State   SyncState `json:"state"`
	Version string    `json:"version,omitempty"` // last acknowledged, or fetched
	Error   string    `json:"error,omitempty"`   // the proxy's words
}

// ProxyStatus is what this replica knows of a proxy that is connected to it, or
// polled it lately.
type ProxyStatus struct {
	Node           string    `json:"node"`
	Role           mesh.Role `json:"role"`
	Transport      Transport `json:"transport"`
	EnvoyVersion   string    `json:"envoyVersion,omitempty"`
	Address        string    `json:"address,omitempty"`
	ConnectedSince time.Time `json:"connectedSince"`
	// Revision that the proxy runs, as far as is known, but for parts of route tables
	// that it refuses; 0 for none.
	Revision int64                 `json:"revision"`
	Types    map[string]TypeStatus `json:"types"` // by clusters, listeners, routes, endpoints, secrets
}

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
func (s *Publisher) Proxies(of ...diag.Ref) []ProxyStatus {
	return s.statuses(func(*client) bool { return true }, of)
}

// ProxiesCalled are those of Proxies that call themselves so.
func (s *Publisher) ProxiesCalled(node string, of ...diag.Ref) []ProxyStatus {
	return s.statuses(func(c *client) bool { return c.node.ID == node }, of)
}

func (s *Publisher) statuses(meant func(*client) bool, of []diag.Ref) []ProxyStatus {
	var all []ProxyStatus
	for _, p := range s.fleet.present() {
		if !meant(p.client) {
			continue
		}
		for _, st := range p.streams {
			all = p.tell(all, of, st.since, st.stance)
		}
		if len(p.streams) == 0 && s.polledLately(p.client) {
			all = p.tell(all, of, s.made.Add(p.joined), func(r regard) stance { return s.stanceByPolls(p.client, r) })
		}
	}
	slices.SortFunc(all, func(a, b ProxyStatus) int {
		return cmp.Or(strings.Compare(a.Node, b.Node), a.ConnectedSince.Compare(b.ConnectedSince))
	})
	return all
}

// tell adds how a proxy stands, unless that is asked of some objects and they are none
// of its concern.
func (c *client) tell(all []ProxyStatus, of []diag.Ref, since time.Time, stand func(regard) stance) []ProxyStatus {
	p := c.introduced()
	p.ConnectedSince = since
	one := stand(regard{state: p.note})
	if len(of) > 0 && !one.concerns(of) {
		return all
	}
	if len(p.Types) > 0 && one.transport == OverREST {
		p.note("endpoints", TypeStatus{State: Fetched})
	}
	p.Transport, p.Revision = one.transport, one.revision
	return append(all, p)
}

// note takes in the state of a type; of several route tables the worst one's.
func (p *ProxyStatus) note(name string, s TypeStatus) {
	if worse(p.Types[name].State, s.State) == s.State {
		p.Types[name] = s
	}
}

// polledLately reports whether a proxy that is on no stream is connected. One that left
// its stream is gone unless it polls.
func (s *Publisher) polledLately(c *client) bool {
	seen := c.seen.Load()
	return seen != c.left.Load() && s.age()-time.Duration(seen) <= max(pollPatience, 3*time.Duration(c.handover.pace.Load()))
}

// connected are the proxies that are on a stream, or poll, by node.
func (s *Publisher) connected() (all []*client) {
	for _, c := range s.fleet.present() {
		if len(c.streams) > 0 || s.polledLately(c.client) {
			all = append(all, c.client)
		}
	}
	slices.SortFunc(all, func(a, b *client) int { return strings.Compare(a.node.ID, b.node.ID) })
	return all
}

func (c *client) introduced() ProxyStatus {
	p := ProxyStatus{Node: c.node.ID, Role: c.proxy.Role, Types: map[string]TypeStatus{}}
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

func (f *fleet) streamsOf(c *client) []*Stream {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return slices.Clone(c.streams)
}
