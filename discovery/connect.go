package discovery

import (
	"fmt"

	"github.com/pilot-api/pilot-api/discovery/compiled"
	"github.com/pilot-api/pilot-api/discovery/fleet"
	"github.com/pilot-api/pilot-api/discovery/stream"
	"github.com/pilot-api/pilot-api/mesh"
)

// Connect begins a stream of the proxy that a node names. It fails as V3 does. The caller
// must Close the stream.
func (p *Publisher) Connect(node mesh.Node, variant stream.Variant) (*stream.Stream, error) {
	return p.connect(node, func(to streamProxy) *stream.Stream { return stream.New(p.streams, to, variant) })
}

// ConnectProxyless is Connect for a client of gRPC without a proxy. The client asks for
// everything by name in the state-of-the-world variant, and uses new configuration only
// when it has all of it. The error is ErrBadNode if the node is not a sidecar's.
func (p *Publisher) ConnectProxyless(node mesh.Node) (*stream.Stream, error) {
	proxy, err := parseNode(node)
	if err != nil {
		return nil, err
	}
	if proxy.Role != mesh.Sidecar {
		return nil, fmt.Errorf("%w: gRPC without a proxy must have the role %s, found %q", ErrBadNode, mesh.Sidecar, node.ID)
	}
	return p.connect(node, func(to streamProxy) *stream.Stream { return stream.NewProxyless(p.streams, to) })
}

// ConnectSecrets begins a stream that has the secrets of a proxy and nothing else. It fails
// as V3 does. The proxy gets the rest of its configuration by another stream or by polls, or
// from elsewhere: the stream does not make it a connected proxy. What it acks and refuses
// counts for the proxy if that is connected. The caller must Close the stream.
func (p *Publisher) ConnectSecrets(node mesh.Node, variant stream.Variant) (*stream.Stream, error) {
	state, err := p.knownForSecrets(node)
	if err != nil {
		return nil, err
	}
	st := stream.NewSecrets(p.streams, secretsProxy{streamProxy{state.Client, p}}, variant)
	state.ViewEntry.UsesStreams.Store(true)
	p.fleet.ConnectSecrets(state.Client, st)
	return st, nil
}

// secretsProxy is the proxy of a stream of secrets.
type secretsProxy struct{ streamProxy }

func (p secretsProxy) Closed(st *stream.Stream) { p.publisher.fleet.DisconnectSecrets(p.Client, st) }

func (p *Publisher) connect(node mesh.Node, begin func(streamProxy) *stream.Stream) (*stream.Stream, error) {
	state, _, err := p.locate(node)
	if err != nil {
		return nil, err
	}
	return p.begin(state.Client, begin), nil
}

func (p *Publisher) begin(c *fleet.Client, begin func(streamProxy) *stream.Stream) *stream.Stream {
	st := begin(streamProxy{c, p})
	if entry := c.Entry(); st.IsProxyless() {
		entry.UsesProxyless.Store(true)
	} else {
		entry.UsesStreams.Store(true)
	}
	p.fleet.Connect(c, st)
	p.arrivals.came(c, st)
	return st
}

// streamProxy is a client as package stream needs it.
type streamProxy struct {
	*fleet.Client
	publisher *Publisher
}

func (p streamProxy) PastViews(next *compiled.View, is func(*compiled.View) bool) []*compiled.View {
	views, recent := p.Entry().PastViews(p.publisher.past, p.Proxy, next, is)
	if recent != nil {
		views = append(views, recent)
	}
	return views
}

func (p streamProxy) Closed(st *stream.Stream) {
	p.publisher.fleet.NoteEnd(p.Client, st)
	p.publisher.fleet.Disconnect(p.Client, st)
	p.publisher.arrivals.left(p.Client, st)
}

func (p streamProxy) Keep(r *stream.Remains) { p.publisher.fleet.Keep(p.Client, r) }

func (p streamProxy) Remains(of *stream.Stream) *stream.Remains {
	return p.publisher.fleet.Remains(p.Client, of)
}

func (p streamProxy) NacksChanged() { p.publisher.fleet.NoteRefusing(p.Client) }
