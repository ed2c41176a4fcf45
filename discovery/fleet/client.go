package fleet

import (
	"sync/atomic"
	"time"

	"github.com/pilot-api/pilot-api/discovery/compiled"
	"github.com/pilot-api/pilot-api/discovery/feedback"
	"github.com/pilot-api/pilot-api/discovery/poll"
	"github.com/pilot-api/pilot-api/discovery/stream"
	"github.com/pilot-api/pilot-api/mesh"
)

// Client is one proxy, for as long as it sends requests.
type Client struct {
	Node       mesh.Node // the default client has no id
	Proxy      mesh.Proxy
	namespace  string       // that the proxy states; "" if it is not known
	seen       atomic.Int64 // when it last sent a request, as Publisher.age gives it
	left       atomic.Int64 // when its last stream ended, before all time if it never had one
	assignment atomic.Pointer[assignment]
	gone       atomic.Bool                 // the proxy is no longer known
	called     atomic.Pointer[mesh.Called] // hosts that its view is for; nil for all
	whole      atomic.Bool                 // the proxy never has a view for called hosts

	Transition poll.Transition
	streams    []*stream.Stream // guarded by the fleet's lock
	secrets    secretStreams    // likewise
	polls      atomic.Bool      // refuse what they are answered
	denied     atomic.Bool      // private keys, when it last polled for secrets
	Fetched    poll.Fetched     // over v1
	Awaited    feedback.Awaited // by polls
	joined     time.Duration
	absence    atomic.Pointer[absence]  // as its last stream ended; nil without one
	lastPoll   atomic.Pointer[polledAs] // nil if it never counted as one that polls
	agent      atomic.Pointer[Agent]
	remains    atomic.Pointer[keptRemains] // of its last stream, for ReturnTime; nil for nothing
}

// assignment is where a proxy finds its view. It is replaced, never changed.
type assignment struct {
	entry *ViewEntry
	// last is the last good view of a proxy that came to the entry from another one. It is
	// nil once the entry has a view that is good for the proxy.
	last  *compiled.View
	since int64 // serial of the generation that moved the proxy here
	// revision of that generation
	revision int64
}

// keptSince is the revision since which the proxy has kept an older view than it should
// have, 0 if it has the right one.
func (c *Client) keptSince() int64 {
	at := c.assignment.Load()
	if at.last != nil {
		return at.revision
	}
	return at.entry.keptSince.Load()
}

// ClientState is a client with the view that it should have at one moment.
type ClientState struct {
	*Client
	*ViewEntry
	View  *compiled.View // nil if there is none yet
	Order int64          // a later state has a higher order
}

// State returns the view that the proxy should have now. A publication first moves the
// proxy to its new assignment and then changes views. So if it still has its assignment after
// the reads, the values that were read belong together.
func (c *Client) State() *ClientState {
	at, v := c.assignmentNow()
	p := &ClientState{Client: c, ViewEntry: at.entry, View: v, Order: at.since}
	if v != nil {
		p.Order = max(p.Order, v.Serial)
	}
	return p
}

// View returns the view that the proxy should have now, or nil if there is none yet.
func (c *Client) View() *compiled.View {
	_, v := c.assignmentNow()
	return v
}

func (c *Client) assignmentNow() (*assignment, *compiled.View) {
	for {
		at := c.assignment.Load()
		v := at.last
		if v == nil {
			v = at.entry.current.Load()
		}
		if c.assignment.Load() == at {
			return at, v
		}
	}
}

// TraitsIn returns the traits of the proxy in a snapshot.
func (c *Client) TraitsIn(s *mesh.Snapshot) mesh.Traits {
	traits := s.TraitsOf(c.Proxy)
	traits.Called = c.called.Load()
	if c.Node.ID == "" {
		traits.Instances, traits.Locality = nil, ""
	}
	return traits
}

// newDefaultClient returns a sidecar without instances. It has a view from the first
// generation on. So problems are known before any proxy sends a request, and everything
// that all proxies share is encoded in advance.
func newDefaultClient(domain string) *Client {
	return &Client{Proxy: mesh.Proxy{Role: mesh.Sidecar, IP: "192.0.2.1", Domain: "default.svc." + domain}}
}

// mostUnproved bounds the proxies of one address that count only because their first poll
// had a version. A client may have invented the version.
const mostUnproved = 64

// isProved reports whether a poller counts as a proxy. A poller beside a workload of the
// registry does. Any other must come back: with the version that it was answered with, or
// in v1, which has no versions, with a request for what it was answered before. A first
// poll with a version may come from a proxy of another replica, so it counts too, while
// there are few such proxies at the address (unproved counts them).
func (c *Client) isProved(unproved map[string]int) bool {
	h := &c.Transition
	if c.Transition.CameBack() || c.Fetched.CameBack() || !c.assignment.Load().entry.unknown {
		return true
	}
	if !h.HasVersion() {
		return false
	}
	address := ""
	if a := c.agent.Load(); a != nil {
		address = a.Address
	}
	unproved[address]++
	return unproved[address] <= mostUnproved
}

// ID returns the id of the proxy's node.
func (c *Client) ID() string { return c.Node.ID }

// Address returns the address that the proxy states.
func (c *Client) Address() string { return c.Proxy.IP }

// IsGone reports whether the proxy is no longer known.
func (c *Client) IsGone() bool { return c.gone.Load() }

// Entry returns the entry of the view that the proxy should have in the end.
func (c *Client) Entry() *ViewEntry { return c.assignment.Load().entry }

// Touch records that the proxy sent a request, at an age of the fleet.
func (s *ClientState) Touch(now time.Duration) {
	s.Client.seen.Store(int64(now))
	s.ViewEntry.seen.Store(int64(now))
}
