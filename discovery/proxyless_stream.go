package discovery

import (
	"fmt"
	"time"

	"github.com/pilot-api/pilot-api/discovery/compiled"
	"github.com/pilot-api/pilot-api/discovery/xds"
	"github.com/pilot-api/pilot-api/mesh"
)

// Bounds of clients of gRPC: a process has a stream for each of its channels, all with
// one node, and names on each what that channel needs.
const (
	maxStreamsOfClient = 128
	maxClientNameBytes = maxNameBytes * maxStreamsOfProxy / maxStreamsOfClient
)

// ConnectProxyless is Connect for a client of gRPC without a proxy. It asks for all
// that it wants by name, as the state of the world, and takes what is new into use when
// it has all of it. One that is no sidecar is ErrBadNode.
func (s *Publisher) ConnectProxyless(node mesh.Node) (*Stream, error) {
	proxy, err := parseNode(node)
	if err != nil {
		return nil, err
	}
	if proxy.Role != mesh.Sidecar {
		return nil, fmt.Errorf("%w: gRPC without a proxy must have the role %s, found %q", ErrBadNode, mesh.Sidecar, node.ID)
	}
	return s.connect(node, func(st *Stream) {
		st.proxyless = true
		for _, t := range st.types() {
			t.byName = true
		}
	})
}

// nextProxyless is next for a client of gRPC. Only routes wait, for the clusters that
// they are the first to lead to (nextTables), and clusters do not go before the client
// lets go of them.
func (st *Stream) nextProxyless(target *compiled.Streamed) *xds.Response {
	clusters := compiled.At{st.clusters.beside(target.Clusters), target.View}
	endpoints := compiled.At{target.Endpoints, target.View}
	listeners := compiled.At{target.ListenersAt(""), target.View}
	routes := compiled.At{target.Routes, target.View}
	st.routes.meet(routes, target.TableNamed)
	routes.Set = st.nextTables(target)
	for _, of := range []struct {
		t    *subscribed
		to   compiled.At
		find func(string) *xds.Resource
	}{
		{&st.clusters, clusters, clusters.Named},
		{&st.endpoints, endpoints, st.endpointsNamed},
		{&st.listeners, listeners, listeners.Named},
		{&st.routes, routes, target.TableNamed},
	} {
		of.t.meet(of.to, of.find)
		if r := st.dueOf(of.t, of.to, of.find); r != nil {
			if of.t == &st.routes {
				st.routed = time.Now()
			}
			return r
		}
	}
	return nil
}

// beside is a set with what else the client was sent and still subscribes to.
func (t *subscribed) beside(s *xds.Set) *xds.Set {
	if t.sent.Set == nil {
		return s
	}
	var kept []*xds.Resource
	for name := range t.named.own() {
		if r := t.sent.Set.Named(name); r != nil && s.Named(name) == nil {
			kept = append(kept, r)
		}
	}
	if len(kept) == 0 {
		return s
	}
	return xds.NewSet(s.TypeURL, append(kept, s.Sorted...))
}
