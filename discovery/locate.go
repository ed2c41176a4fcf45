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

// located is a proxy that sent a request, and what it should have now.
type located struct {
	*fleet.ClientState
	publisher *Publisher
}

// locate finds the proxy that a node names, and makes it known if it is not. The proxy has
// all hosts. A bad node is an error even while nothing is published.
func (p *Publisher) locate(node mesh.Node) (*located, *compiled.Generation, error) {
	if c := p.fleet.Find(node); c != nil && c.CallsSome() {
		p.keepWhole(c)
	}
	return p.locateAs(node, p.fleet.Admit)
}

// locateAs is locate; add adds a proxy that is not known.
func (p *Publisher) locateAs(node mesh.Node, add admit) (*located, *compiled.Generation, error) {
	state, err := p.known(node, add)
	if err != nil {
		return nil, nil, err
	}
	state.Touch(p.age())
	// Read after the view, the generation is not older than it. So it has endpoints for all
	// clusters of the view.
	return &located{state, p}, p.encoder.Current.Load(), nil
}

// knownForSecrets is locate for a stream of secrets. It does not count as a sign of life of
// the proxy.
func (p *Publisher) knownForSecrets(node mesh.Node) (*fleet.ClientState, error) {
	return p.known(node, p.fleet.AdmitForSecrets)
}

// admit adds a proxy to the fleet.
type admit func(mesh.Node, mesh.Proxy, mesh.Traits) *fleet.Client

func (p *Publisher) known(node mesh.Node, add admit) (*fleet.ClientState, error) {
	if _, err := p.published(); err != nil {
		_, bad := parseNode(node)
		return nil, cmp.Or(bad, err)
	}
	if c := p.fleet.Find(node); c != nil {
		if state := c.State(); state.View != nil {
			return state, nil
		}
	}
	return p.join(node, add)
}

// age returns the time since the Publisher was made, by the monotonic clock. The wall clock
// may jump, and then no proxy has fallen silent.
func (p *Publisher) age() time.Duration { return time.Since(p.made) }

// join makes a proxy known. It waits only for the view of this proxy.
func (p *Publisher) join(node mesh.Node, add admit) (*fleet.ClientState, error) {
	proxy, err := parseNode(node)
	if err != nil {
		return nil, err
	}
	p.encoder.Advancing.RLock()
	defer p.encoder.Advancing.RUnlock()
	g := p.encoder.Current.Load()
	for {
		traits := g.Mesh.TraitsOf(proxy)
		c := add(node, proxy, traits)
		traits = c.TraitsIn(g.Mesh)
		p.letGo()
		state := c.State()
		if state.View == nil {
			state.View, err = p.firstView(g, state.ViewEntry, traits)
		}
		if errors.Is(err, ErrOverBudget) && p.makeRoom() {
			state.ViewEntry.Retry()
			state.View, err = p.firstView(g, state.ViewEntry, traits)
		}
		switch {
		case errors.Is(err, fleet.ErrClosed):
			// Other proxies have replaced it in between.
		case err != nil:
			return nil, fmt.Errorf("%w for %s: %w", ErrNotReady, node.ID, err)
		default:
			return state, nil
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
func (p *Publisher) makeRoom() bool {
	before, _ := p.fleet.Size()
	p.fleet.Retire(idleUnderPressure)
	p.letGo()
	after, _ := p.fleet.Size()
	return after < before
}

// idleUnderPressure is the time without a poll after which a proxy counts as gone if there
// is no room for another one. An Envoy polls every few seconds.
const idleUnderPressure = time.Minute
