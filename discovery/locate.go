package discovery

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/pilot-api/pilot-api/discovery/compiled"
	"github.com/pilot-api/pilot-api/discovery/fleet"
	"github.com/pilot-api/pilot-api/mesh"
)

// located is a proxy that asks, and what it is to have now.
type located struct {
	*fleet.ClientState
	publisher *Publisher
}

// locate finds the proxy that calls itself node, and makes it known when it is
// not. That a node is bad is said also while there is nothing to tell.
func (s *Publisher) locate(node mesh.Node) (*located, *compiled.Generation, error) {
	if _, err := s.published(); err != nil {
		_, bad := parseNode(node)
		return nil, nil, cmp.Or(bad, err)
	}
	p, err := s.known(node)
	if err != nil {
		return nil, nil, err
	}
	now := int64(s.age())
	p.Client.Seen.Store(now)
	p.ViewEntry.Seen.Store(now)
	// Read after the view, the generation is not older: endpoints are there
	// for all clusters of the view.
	return &located{p, s}, s.encoder.Current.Load(), nil
}

func (s *Publisher) known(node mesh.Node) (*fleet.ClientState, error) {
	if c := s.fleet.Find(node); c != nil {
		if p := c.State(); p.View != nil {
			return p, nil
		}
	}
	return s.join(node)
}

// age is the time since the publisher was made, by the monotonic clock: the wall
// clock may jump, and nobody has fallen silent for that.
func (s *Publisher) age() time.Duration { return time.Since(s.made) }

// join makes a proxy known. It waits for nothing but its own view.
func (s *Publisher) join(node mesh.Node) (*fleet.ClientState, error) {
	proxy, err := parseNode(node)
	if err != nil {
		return nil, err
	}
	s.encoder.Advancing.RLock()
	defer s.encoder.Advancing.RUnlock()
	g := s.encoder.Current.Load()
	mv := g.Mesh.View(proxy)
	for {
		c := s.fleet.Admit(node, proxy, mv)
		s.letGo()
		p := c.State()
		if p.View == nil {
			p.View, err = s.firstView(g, p.ViewEntry, mv)
		}
		if errors.Is(err, ErrOverBudget) && s.makeRoom() {
			p.ViewEntry.Retry()
			p.View, err = s.firstView(g, p.ViewEntry, mv)
		}
		switch {
		case errors.Is(err, fleet.ErrClosed):
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

// makeRoom drops the views without a connected proxy, and reports whether there
// were any.
func (s *Publisher) makeRoom() bool {
	before, _ := s.fleet.Size()
	s.fleet.Retire(idleUnderPressure)
	s.letGo()
	after, _ := s.fleet.Size()
	return after < before
}

// idleUnderPressure is after how long without a poll a proxy counts as gone when
// there is no room for another one. An Envoy polls every few seconds.
const idleUnderPressure = time.Minute
