package discovery

import (
	"cmp"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/pilot-api/pilot-api/discovery/compiled"
	"github.com/pilot-api/pilot-api/discovery/feedback"
	"github.com/pilot-api/pilot-api/discovery/poll"
	"github.com/pilot-api/pilot-api/discovery/stream"
	"github.com/pilot-api/pilot-api/mesh"
)

// client is what is known about one proxy for as long as it asks.
type client struct {
	node  mesh.Node // without an id for the one that nobody is
	proxy mesh.Proxy
	seen  atomic.Int64 // a time.Duration, as Publisher.age gives it
	left  atomic.Int64 // when its last stream ended, before all time without one
	place atomic.Pointer[place]
	gone  atomic.Bool // known no more

	handover poll.Transition
	streams  []*stream.Stream // guarded by the fleet's lock
	polls    atomic.Bool      // refuse what they are answered
	denied   atomic.Bool      // private keys, when it last polled for secrets
	fetched  poll.Fetched     // over v1
	awaited  feedback.Awaited // by polls
	joined   time.Duration
	agent    atomic.Pointer[Agent]
}

// place is where a proxy finds its view. It is replaced, never changed.
type place struct {
	slot *slot
	// last is the last good view of a proxy that came to the slot from another
	// one; nil once the slot has one that is good for it.
	last  *compiled.View
	since int64 // serial of the generation that brought the proxy here
	// revision of that one.
	revision int64
}

// keptSince is the revision since which the proxy is told an older view than it
// should be, 0 when it is not.
func (c *client) keptSince() int64 {
	at := c.place.Load()
	if at.last != nil {
		return at.revision
	}
	return at.slot.kept.Load()
}

// proxyState is a client and what it is told at one moment.
type proxyState struct {
	*client
	*slot
	publisher *Publisher
	view      *compiled.View // nil when there is none yet
	order     int64          // of what comes later is higher
}

// told is what the proxy is told now. A publication moves the proxy before it
// changes views, so what was read of a place that still is the proxy's is its
// own.
func (c *client) told() *proxyState {
	at, v := c.toldAt()
	p := &proxyState{client: c, slot: at.slot, view: v, order: at.since}
	if v != nil {
		p.order = max(p.order, v.Serial)
	}
	return p
}

// toldView is the view that the proxy is told now, nil when there is none yet.
func (c *client) toldView() *compiled.View {
	_, v := c.toldAt()
	return v
}

func (c *client) toldAt() (*place, *compiled.View) {
	for {
		at := c.place.Load()
		v := at.last
		if v == nil {
			v = at.slot.view.Load()
		}
		if c.place.Load() == at {
			return at, v
		}
	}
}

// viewIn is the proxy's view in a snapshot.
func (c *client) viewIn(s *mesh.Snapshot) mesh.View {
	v := s.View(c.proxy)
	if c.node.ID == "" {
		v.Instances, v.Place = nil, ""
	}
	return v
}

// nobody is a sidecar with nothing of its own. A view for it is there from the
// first generation on, so that problems are known before any proxy asks, and
// what is the same for all is encoded ahead.
func nobody(domain string) *client {
	return &client{proxy: mesh.Proxy{Role: mesh.Sidecar, IP: "192.0.2.1", Domain: "default.svc." + domain}}
}

// locate finds the proxy that calls itself node, and makes it known when it is
// not. That a node is bad is said also while there is nothing to tell.
func (s *Publisher) locate(node mesh.Node) (*proxyState, *compiled.Generation, error) {
	if _, err := s.published(); err != nil {
		_, bad := parseNode(node)
		return nil, nil, cmp.Or(bad, err)
	}
	p, err := s.known(node)
	if err != nil {
		return nil, nil, err
	}
	p.publisher = s
	now := int64(s.age())
	p.client.seen.Store(now)
	p.slot.seen.Store(now)
	// Read after the view, the generation is not older: endpoints are there
	// for all clusters of the view.
	return p, s.encoder.Current.Load(), nil
}

func (s *Publisher) known(node mesh.Node) (*proxyState, error) {
	if c := s.fleet.find(node); c != nil {
		if p := c.told(); p.view != nil {
			return p, nil
		}
	}
	return s.join(node)
}

// age is the time since the publisher was made, by the monotonic clock: the wall
// clock may jump, and nobody has fallen silent for that.
func (s *Publisher) age() time.Duration { return time.Since(s.made) }

// join makes a proxy known. It waits for nothing but its own view.
func (s *Publisher) join(node mesh.Node) (*proxyState, error) {
	proxy, err := parseNode(node)
	if err != nil {
		return nil, err
	}
	s.encoder.Advancing.RLock()
	defer s.encoder.Advancing.RUnlock()
	g := s.encoder.Current.Load()
	mv := g.Mesh.View(proxy)
	for {
		c := s.fleet.admit(node, proxy, mv)
		s.letGo()
		p := c.told()
		if p.view == nil {
			p.view, err = s.first(g, p.slot, mv)
		}
		if errors.Is(err, ErrOverBudget) && s.makeRoom() {
			p.slot.retry()
			p.view, err = s.first(g, p.slot, mv)
		}
		switch {
		case errors.Is(err, errClosed):
			// Pushed out by others in between.
		case err != nil:
			return nil, fmt.Errorf("%w for %s: %w", ErrNotReady, node.ID, err)
		default:
			return p, nil
		}
	}
}

func parseNode(node mesh.Node) (mesh.Proxy, error) {
	proxy, err := node.Proxy()
	if err != nil {
		err = fmt.Errorf("%w: %w", ErrBadNode, err)
	}
	return proxy, err
}

// mostUnproved bounds the proxies of one address that count because they said that they
// have a version, which may be invented.
const mostUnproved = 64

// isProved reports whether somebody that polls counts as a proxy. One beside a workload of
// the registry does. Anybody else must come back: with the version it was answered, or in
// v1, which has none, for what it was answered before. One that has a version at its first
// poll may have it from another replica, and so counts while there are few of the same
// address, which unproved counts.
func (c *client) isProved(unproved map[string]int) bool {
	h := &c.handover
	if c.handover.CameBack() || c.fetched.CameBack() || !c.place.Load().slot.unknown {
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
