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

// Client is what is known about one proxy, as long as it asks.
type Client struct {
	Node  mesh.Node // without an id for the default client
	Proxy mesh.Proxy
	seen  atomic.Int64 // a time.Duration, as Publisher.age gives it
	left  atomic.Int64 // when its last stream ended, before all time without one
	place atomic.Pointer[place]
	gone  atomic.Bool // known no more

	Transition poll.Transition
	streams    []*stream.Stream // guarded by the fleet's lock
	polls      atomic.Bool      // refuse what they are answered
	denied     atomic.Bool      // private keys, when it last polled for secrets
	Fetched    poll.Fetched     // over v1
	Awaited    feedback.Awaited // by polls
	joined     time.Duration
	absence    atomic.Pointer[absence]  // as its last stream ended; nil without one
	lastPoll   atomic.Pointer[polledAs] // nil if it never counted as one that polls
	agent      atomic.Pointer[Agent]
}

// place is where a proxy finds its view. It is replaced, never changed.
type place struct {
	entry *ViewEntry
	// last is the last good view of a proxy that came to the entry from another
	// one; nil once the entry has one that is good for it.
	last  *compiled.View
	since int64 // serial of the generation that brought the proxy here
	// revision of that one.
	revision int64
}

// keptSince is the revision since which the proxy gets an older view than it
// should be, 0 when it is not.
func (c *Client) keptSince() int64 {
	at := c.place.Load()
	if at.last != nil {
		return at.revision
	}
	return at.entry.keptSince.Load()
}

// ClientState is a client and the view that it should have at one moment.
type ClientState struct {
	*Client
	*ViewEntry
	View  *compiled.View // nil when there is none yet
	Order int64          // of what comes later is higher
}

// State returns what the proxy should have now. A publication moves the proxy before it
// changes views, so what was read of a place that still is the proxy's is its
// own.
func (c *Client) State() *ClientState {
	at, v := c.placeNow()
	p := &ClientState{Client: c, ViewEntry: at.entry, View: v, Order: at.since}
	if v != nil {
		p.Order = max(p.Order, v.Serial)
	}
	return p
}

// View returns the view that the proxy should have now, nil if there is none yet.
func (c *Client) View() *compiled.View {
	_, v := c.placeNow()
	return v
}

func (c *Client) placeNow() (*place, *compiled.View) {
	for {
		at := c.place.Load()
		v := at.last
		if v == nil {
			v = at.entry.current.Load()
		}
		if c.place.Load() == at {
			return at, v
		}
	}
}

// ViewIn is the proxy's view in a snapshot.
func (c *Client) ViewIn(s *mesh.Snapshot) mesh.View {
	v := s.View(c.Proxy)
	if c.Node.ID == "" {
		v.Instances, v.Place = nil, ""
	}
	return v
}

// newDefaultClient makes a sidecar with nothing of its own. It has a view from the
// first generation on, so that problems are known before any proxy asks, and
// what is the same for all is encoded ahead.
func newDefaultClient(domain string) *Client {
	return &Client{Proxy: mesh.Proxy{Role: mesh.Sidecar, IP: "192.0.2.1", Domain: "default.svc." + domain}}
}

// mostUnproved bounds the proxies of one address that count because they said that they
// have a version, which may be invented.
const mostUnproved = 64

// isProved reports whether somebody that polls counts as a proxy. One beside a workload of
// the registry does. Anybody else must come back: with the version it was answered, or in
// v1, which has none, for what it was answered before. One that has a version at its first
// poll may have it from another replica, and so counts while there are few of the same
// address, which unproved counts.
func (c *Client) isProved(unproved map[string]int) bool {
	h := &c.Transition
	if c.Transition.CameBack() || c.Fetched.CameBack() || !c.place.Load().entry.unknown {
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

// ID is that of the proxy's node.
func (c *Client) ID() string { return c.Node.ID }

// Address is where the proxy says that it is.
func (c *Client) Address() string { return c.Proxy.IP }

// IsGone reports whether the proxy is not known any more.
func (c *Client) IsGone() bool { return c.gone.Load() }

// Entry is that of the view which the proxy should have in the end.
func (c *Client) Entry() *ViewEntry { return c.place.Load().entry }

// Touch notes that the proxy asks, at an age of the fleet.
func (s *ClientState) Touch(now time.Duration) {
	s.Client.seen.Store(int64(now))
	s.ViewEntry.seen.Store(int64(now))
}
