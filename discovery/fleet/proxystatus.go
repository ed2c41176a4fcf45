package fleet

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/pilot-api/pilot-api/discovery/compiled"
	"github.com/pilot-api/pilot-api/discovery/feedback"
	"github.com/pilot-api/pilot-api/discovery/stream"
)

// Agent describes the program of a proxy.
type Agent struct {
	Version string // of the Envoy, "" if unknown
	Address string // from which it connects
}

// ThisMachine is the address of proxies that connect over a socket of the server.
const ThisMachine = "localhost"

func (c *Client) Introduce(a Agent) {
	if known := c.agent.Load(); known == nil || *known != a {
		c.agent.Store(&a)
	}
}

// pollPatience is how long after its last poll a proxy counts as connected, if that is
// longer than three times its own pace.
const pollPatience = 30 * time.Second

func (f *Fleet) Statuses(published int64, meant func(*Client) bool, of feedback.Subjects) []feedback.ProxyStatus {
	var all []feedback.ProxyStatus
	for _, p := range f.present() {
		if !meant(p.Client) {
			continue
		}
		for _, st := range p.streams {
			all = p.addStatus(all, of, st.Since(), func(r feedback.SyncVisitor) feedback.ProxySyncState { return p.beside.with(st.SyncState(r), r) })
		}
		if len(p.streams) == 0 && f.polledLately(p.Client) {
			all = p.addStatus(all, of, f.opts.Began.Add(p.joined), func(r feedback.SyncVisitor) feedback.ProxySyncState {
				return p.beside.with(p.stateByPolls(published, r), r)
			})
		}
	}
	slices.SortFunc(all, func(a, b feedback.ProxyStatus) int {
		return cmp.Or(strings.Compare(a.Node, b.Node), a.ConnectedSince.Compare(b.ConnectedSince))
	})
	return all
}

// addStatus appends the status of a proxy, unless the caller asks about some objects and
// none of them is in its configuration.
func (c *Client) addStatus(all []feedback.ProxyStatus, of feedback.Subjects, since time.Time, stand func(feedback.SyncVisitor) feedback.ProxySyncState) []feedback.ProxyStatus {
	p := c.introduced()
	p.ConnectedSince = since
	one := stand(feedback.SyncVisitor{State: p.Note})
	if !of.None() && !one.Concerns(of) {
		return all
	}
	if p.Transport = one.Transport; one.Transport == feedback.OverV1 {
		p.Fetched = one.Revision
	} else {
		p.Revision = one.Revision
	}
	if one.View != nil {
		p.NoteRoots(one.View.Config)
	}
	return append(all, p)
}

// polledLately reports whether a proxy without a stream counts as connected. A proxy that
// has left its stream does not, unless it polls.
func (f *Fleet) polledLately(c *Client) bool {
	seen := c.seen.Load()
	return seen != c.left.Load() && f.age()-time.Duration(seen) <= max(pollPatience, 3*c.Transition.Pace())
}

// Connected returns the proxies that are on a stream or poll, sorted by node.
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
	p := feedback.ProxyStatus{Node: c.Node.ID, Namespace: c.namespace, Role: c.Proxy.Role, Labels: c.Proxy.Labels, Types: map[string]feedback.TypeStatus{}}
	if a := c.agent.Load(); a != nil {
		p.EnvoyVersion, p.Address = a.Version, a.Address
	}
	return p
}

// runs returns the revision in effect on a proxy that polls, has one and should have
// target. published is not newer than target.
func (c *Client) runs(at, target *compiled.Polled, published int64) int64 {
	if at == target {
		return c.RevisionInEffect(at.View, published)
	}
	return c.RevisionBefore(at.View, at.ReplacedAt(), target.Since)
}

// RevisionInEffect returns the revision in effect on a proxy that has acked its whole view. It
// is the published revision, unless the proxy keeps an older view, or the view is of a
// publication that is not complete yet.
func (c *Client) RevisionInEffect(of *compiled.View, published int64) int64 {
	if kept := c.keptSince(); kept > 0 {
		return kept - 1
	}
	return max(published, of.Revision)
}

// RevisionBefore returns the last revision of the view that a proxy is at. until is the first
// revision of which the view or its endpoints were replaced; 0 means not yet. If the proxy
// moved to its entry before that, the view ended for it at the move; otherwise it ended
// with next, the first revision of what replaced it, at the latest. A publication may bring
// several revisions, and the view shows none of them.
func (c *Client) RevisionBefore(at *compiled.View, until, next int64) int64 {
	if moved := c.assignment.Load().revision; moved > at.Revision && (until == 0 || moved < until) {
		until = moved
	}
	return cmp.Or(until, next) - 1
}

func (f *Fleet) streamsOf(c *Client) []*stream.Stream {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return slices.Clone(c.streams)
}
