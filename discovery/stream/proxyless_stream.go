package stream

import (
	"time"

	"github.com/pilot-api/pilot-api/discovery/compiled"
	"github.com/pilot-api/pilot-api/discovery/xds"
)

// Limits for gRPC clients. A process has one stream for each of its channels, all with the
// same node. Each stream subscribes to the names that its channel needs.
const (
	MaxStreamsOfClient = 128
	maxClientNameBytes = maxNameBytes * MaxStreamsOfProxy / MaxStreamsOfClient
)

// nextProxyless is next for a client of gRPC. Only routes wait, for the clusters that they
// are the first to lead to (nextTables). Clusters are not withdrawn before the client
// unsubscribes.
func (st *Stream) nextProxyless(target *compiled.Streamed) *xds.Response {
	clusters := compiled.At{Set: st.meetProxyless(target, st.clusters.beside(target.Clusters)), View: target.View}
	endpoints := compiled.At{Set: target.Endpoints, View: target.View}
	listeners := compiled.At{Set: target.ListenersAt(""), View: target.View}
	routes := compiled.At{Set: target.Routes, View: target.View}
	st.routes.meet(routes, target.TableNamed)
	routes.Set = st.nextTables(target)
	for _, of := range []struct {
		t    *subscription
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

// beside returns a set together with everything else that the client was sent and still
// subscribes to.
func (t *subscription) beside(s *xds.Set) *xds.Set {
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

// MaxStreamsOfProxy bounds the streams of one proxy. A proxy uses one; older ones may be
// broken without a sign of it.
const MaxStreamsOfProxy = 8
