package fleet

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/discovery/compiled"
	"github.com/pilot-api/pilot-api/discovery/feedback"
	"github.com/pilot-api/pilot-api/discovery/stream"
)

// Agent is what is known of an Envoy beside its identity.
type Agent struct {
	Version string // of the Envoy, "" when it is not known
	Address string // that it calls from
}

// ThisMachine is the address of a proxy that asks over a socket of the server's.
const ThisMachine = "localhost"

func (c *Client) Introduce(a Agent) {
	if known := c.agent.Load(); known == nil || *known != a {
		c.agent.Store(&a)
	}
}

// pollPatience is how long ago the last poll of a proxy may be that counts as
// connected, beside three times its own pace.
const pollPatience = 30 * time.Second

func (f *Fleet) Statuses(published int64, meant func(*Client) bool, of []diag.Ref) []feedback.ProxyStatus {
	var all []feedback.ProxyStatus
	for _, p := range f.present() {
		if !meant(p.Client) {
			continue
		}
		for _, st := range p.streams {
			all = p.tell(all, of, st.Since(), st.SyncState)
		}
		if len(p.streams) == 0 && f.polledLately(p.Client) {
			all = p.tell(all, of, f.opts.Began.Add(p.joined), func(r feedback.SyncVisitor) feedback.ProxySyncState { return p.stateByPolls(published, r) })
		}
	}
	slices.SortFunc(all, func(a, b feedback.ProxyStatus) int {
		return cmp.Or(strings.Compare(a.Node, b.Node), a.ConnectedSince.Compare(b.ConnectedSince))
	})
	return all
}

// tell adds the status of a proxy, unless that is asked of some objects and they are none
// of its concern.
func (c *Client) tell(all []feedback.ProxyStatus, of []diag.Ref, since time.Time, stand func(feedback.SyncVisitor) feedback.ProxySyncState) []feedback.ProxyStatus {
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
func (f *Fleet) polledLately(c *Client) bool {
	seen := c.Seen.Load()
	return seen != c.left.Load() && f.age()-time.Duration(seen) <= max(pollPatience, 3*c.Transition.Pace())
}

// Connected are the proxies that are on a stream, or poll, by node.
func (f *Fleet) Connected() (all []*Client) {
	for _, c := range f.present() {
		if len(c.streams) > 0 || f.polledLately(c.Client) {
			all = append(all, c.Client)
		}
	}
	slices.SortFunc(all, func(a, b *Client) int { return strings.Compare(a.Node.ID, b.Node.ID) })
	return all
}

func (c *Client) introduced() feedback.ProxyStatus {
	p := feedback.ProxyStatus{Node: c.Node.ID, Role: c.Proxy.Role, Types: map[string]feedback.TypeStatus{}}
	if a := c.agent.Load(); a != nil {
		p.EnvoyVersion, p.Address = a.Version, a.Address
	}
	return p
}

// runs is the revision that a proxy runs which is at a view and should have another
// one, while one is published that is not newer than the latter.
func (c *Client) runs(at, target *compiled.View, published int64) int64 {
	switch {
	case at == nil || target == nil:
		return 0
	case at == target:
		return c.Newest(at.Revision, published)
	}
	return c.Before(at, at.Until.Load(), target.Revision)
}

// Newest is the revision that a proxy runs which has its whole view, which is so since
// first: the one published, unless the proxy gets an older view.
func (c *Client) Newest(first, published int64) int64 {
	if kept := c.keptSince(); kept > 0 {
		return kept - 1
	}
	return max(published, first)
}

// Before is the last revision of a view, or of its endpoints, that was replaced at
// until, 0 for not yet. The proxy may have left it for another one: when it came to its
// place, or not later than for what became next.
func (c *Client) Before(at *compiled.View, until, next int64) int64 {
	if moved := c.Place.Load().revision; moved > at.Revision && (until == 0 || moved < until) {
		until = moved
	}
	return cmp.Or(until, next) - 1
}

func (f *Fleet) streamsOf(c *Client) []*stream.Stream {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return slices.Clone(c.streams)
}
