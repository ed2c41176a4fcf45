package discovery

import (
	"slices"

	"github.com/pilot-api/pilot-api/discovery/fleet"
	"github.com/pilot-api/pilot-api/discovery/stream"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// ConnectOnDemand is Connect for an Envoy on a delta stream that can ask for hosts which its
// route tables lack. If neither the mesh settings nor its Sidecar say that it has hosts on
// demand, or if the proxy is no sidecar, it is Connect.
func (p *Publisher) ConnectOnDemand(node mesh.Node) (*stream.Stream, error) {
	proxy, err := parseNode(node)
	if err != nil {
		return nil, err
	}
	if proxy.Role != mesh.Sidecar || !p.asksForHosts(node, proxy) {
		return p.Connect(node, stream.Delta)
	}
	state, _, err := p.locateAs(node, func(node mesh.Node, proxy mesh.Proxy, traits mesh.Traits) *fleet.Client {
		traits.Called = mesh.NewCalled(nil)
		return p.fleet.Admit(node, proxy, traits)
	})
	if err != nil {
		return nil, err
	}
	if !state.Client.CallsSome() {
		p.call(state.Client, mesh.NewCalled(nil))
	}
	if !state.Client.CallsSome() { // Another program has the node, too.
		return p.Connect(node, stream.Delta)
	}
	return p.begin(state.Client, func(to streamProxy) *stream.Stream { return stream.NewOnDemand(p.streams, to) }), nil
}

// asksForHosts reports whether a proxy that connects has hosts on demand. A proxy that had
// them goes on to ask, even if its Sidecar says otherwise by now: it then has all hosts.
func (p *Publisher) asksForHosts(node mesh.Node, proxy mesh.Proxy) bool {
	if c := p.fleet.Find(node); c != nil && c.CallsSome() {
		return true
	}
	g := p.encoder.Current.Load()
	if g == nil || p.opts.Settings.OnDemand == mesh.OnDemandOff && !slices.ContainsFunc(g.Mesh.Objects("Sidecar"), saysOnDemand) {
		return false // A proxy that connects waits for no publication.
	}
	p.encoder.Advancing.RLock()
	defer p.encoder.Advancing.RUnlock()
	g = p.encoder.Current.Load()
	return p.compiler.OnDemand(g.Mesh.TraitsOf(proxy)) == mesh.OnDemandHosts
}

func saysOnDemand(o *schema.Object) bool { return o.Meta.Annotations[schema.OnDemandAnnotation] != "" }

// call gives a proxy the view for some called hosts. If there is no room for that view, it is
// one for all hosts, and if there is no room for that either, the proxy keeps what it has.
func (p *Publisher) call(c *fleet.Client, called *mesh.Called) {
	p.encoder.Advancing.RLock()
	defer p.encoder.Advancing.RUnlock()
	g := p.encoder.Current.Load()
	for _, called := range []*mesh.Called{called, mesh.CallsEverything()} {
		if !p.fleet.Call(c, called, g) {
			return
		}
		// The last view of the proxy is let go only now. Until then it keeps what both views
		// are made of.
		defer p.letGo()
		entry := c.Entry()
		_, err := p.firstView(g, entry, c.TraitsIn(g.Mesh))
		if err == nil {
			entry.UsesStreams.Store(true)
			p.fleet.Arrive(c, g.Serial)
			return
		}
		p.opts.Log.Warn("no view for the hosts that a proxy calls", "node", c.Node.ID, "err", err)
	}
}

// keepWhole gives a proxy the configuration for all hosts, for good.
func (p *Publisher) keepWhole(c *fleet.Client) {
	if p.fleet.KeepWhole(c) {
		p.call(c, nil)
	}
}

// Call gives the proxy the view for some called hosts.
func (p streamProxy) Call(called *mesh.Called) { p.publisher.call(p.Client, called) }
