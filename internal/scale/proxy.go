package scale

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/pilot-api/pilot-api/discovery"
)

// Proxy is a proxy on delta ADS that accepts everything and subscribes to what its
// resources refer to, as Envoy does. Between connections it remembers the versions of its
// resources and states them when it returns.
type Proxy struct {
	Node string // its id
	// Calls are the hosts that its workload calls at port 80. If there are any, the proxy is an
	// Envoy that asks for hosts which its route tables lack, and has hosts on demand.
	Calls    []string
	called   bool
	versions map[string]map[string]string // by type and name
	// Received counts the resources that the proxy was sent.
	Received atomic.Int64
	// Answered counts the hosts for which the proxy has asked and been answered.
	Answered atomic.Int64
}

// NewProxy returns a proxy with a node id that has no resources yet.
func NewProxy(node string) *Proxy {
	p := &Proxy{Node: node, versions: map[string]map[string]string{}}
	for _, typeURL := range []string{discovery.ClusterType, discovery.EndpointType, discovery.ListenerType, discovery.RouteType} {
		p.versions[typeURL] = map[string]string{}
	}
	return p
}

// Run connects the proxy and returns when the stream or ctx ends.
func (p *Proxy) Run(ctx context.Context, conn *grpc.ClientConn) error {
	stream, err := discoveryv3.NewAggregatedDiscoveryServiceClient(conn).DeltaAggregatedResources(ctx)
	if err != nil {
		return err
	}
	for _, typeURL := range []string{discovery.ClusterType, discovery.EndpointType, discovery.ListenerType, discovery.RouteType} {
		if err := stream.Send(p.first(typeURL)); err != nil {
			return err
		}
	}
	asks := len(p.Calls) > 0
	if asks && p.called {
		asks = false
		if err := p.call(stream); err != nil {
			return err
		}
	}
	for {
		response, err := stream.Recv()
		if err != nil {
			return err
		}
		if asks && response.GetTypeUrl() == discovery.RouteType {
			asks = false
			if err := p.call(stream); err != nil {
				return err
			}
		}
		if err := p.take(stream, response); err != nil {
			return err
		}
	}
}

// first returns the first request of a type on a new stream.
func (p *Proxy) first(typeURL string) *discoveryv3.DeltaDiscoveryRequest {
	request := &discoveryv3.DeltaDiscoveryRequest{
		Node: p.node(), TypeUrl: typeURL,
		InitialResourceVersions: maps.Clone(p.versions[typeURL]),
	}
	switch typeURL {
	case discovery.ClusterType, discovery.ListenerType:
		request.ResourceNamesSubscribe = []string{"*"}
	default:
		request.ResourceNamesSubscribe = slices.Collect(maps.Keys(p.versions[typeURL]))
	}
	return request
}

// node returns the node of the proxy. An Envoy that asks for hosts says that it can.
func (p *Proxy) node() *corev3.Node {
	if len(p.Calls) == 0 {
		return &corev3.Node{Id: p.Node}
	}
	return &corev3.Node{
		Id: p.Node,
		UserAgentVersionType: &corev3.Node_UserAgentBuildVersion{
			UserAgentBuildVersion: &corev3.BuildVersion{Version: &typev3.SemanticVersion{MajorNumber: 1, MinorNumber: 40}},
		},
		Extensions: []*corev3.Extension{{Name: "envoy.filters.http.on_demand", Category: "envoy.filters.http"}},
	}
}

// call asks for the hosts that the workload calls: one by one, as their first requests do, or
// all at once if the proxy comes back with them.
func (p *Proxy) call(stream grpc.BidiStreamingClient[discoveryv3.DeltaDiscoveryRequest, discoveryv3.DeltaDiscoveryResponse]) error {
	together := 1
	if p.called {
		together = len(p.Calls)
	}
	p.called = true
	for hosts := range slices.Chunk(p.Calls, together) {
		request := &discoveryv3.DeltaDiscoveryRequest{TypeUrl: virtualHostType}
		for _, host := range hosts {
			request.ResourceNamesSubscribe = append(request.ResourceNamesSubscribe, "80/"+host)
		}
		if err := stream.Send(request); err != nil {
			return err
		}
	}
	return nil
}

const virtualHostType = "type.googleapis.com/envoy.config.route.v3.VirtualHost"

// take accepts a response, after it has subscribed to what its resources refer to.
func (p *Proxy) take(stream grpc.BidiStreamingClient[discoveryv3.DeltaDiscoveryRequest, discoveryv3.DeltaDiscoveryResponse], response *discoveryv3.DeltaDiscoveryResponse) error {
	known := p.versions[response.GetTypeUrl()]
	next := &discoveryv3.DeltaDiscoveryRequest{}
	if response.GetTypeUrl() == virtualHostType {
		p.Answered.Add(int64(len(response.GetResources())))
		return stream.Send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: virtualHostType, ResponseNonce: response.GetNonce()})
	}
	p.Received.Add(int64(len(response.GetResources())))
	for _, r := range response.GetResources() {
		known[r.GetName()] = r.GetVersion()
		typeURL, name, err := refersTo(r.GetResource())
		if err != nil {
			return fmt.Errorf("%s: %w", r.GetName(), err)
		}
		if _, subscribed := p.versions[typeURL][name]; name != "" && !subscribed {
			next.TypeUrl = typeURL
			next.ResourceNamesSubscribe = append(next.ResourceNamesSubscribe, name)
			p.versions[typeURL][name] = ""
		}
	}
	for _, name := range response.GetRemovedResources() {
		delete(known, name)
	}
	if next.TypeUrl != "" {
		if err := stream.Send(next); err != nil {
			return err
		}
	}
	return stream.Send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: response.GetTypeUrl(), ResponseNonce: response.GetNonce()})
}

// refersTo returns the resource that a cluster or listener refers to, if any.
func refersTo(resource *anypb.Any) (typeURL, name string, err error) {
	switch resource.GetTypeUrl() {
	case discovery.ClusterType:
		var c clusterv3.Cluster
		if err := resource.UnmarshalTo(&c); err != nil || c.GetType() != clusterv3.Cluster_EDS {
			return "", "", err
		}
		if name := c.GetEdsClusterConfig().GetServiceName(); name != "" {
			return discovery.EndpointType, name, nil
		}
		return discovery.EndpointType, c.GetName(), nil
	case discovery.ListenerType:
		var l listenerv3.Listener
		if err := resource.UnmarshalTo(&l); err != nil {
			return "", "", err
		}
		name, err := tableOf(&l)
		return discovery.RouteType, name, err
	}
	return "", "", nil
}

// tableOf returns the name of the route table that a listener refers to, or "".
func tableOf(l *listenerv3.Listener) (string, error) {
	for _, chain := range append(l.GetFilterChains(), l.GetDefaultFilterChain()) {
		for _, filter := range chain.GetFilters() {
			var manager hcmv3.HttpConnectionManager
			if !filter.GetTypedConfig().MessageIs(&manager) {
				continue
			}
			if err := filter.GetTypedConfig().UnmarshalTo(&manager); err != nil {
				return "", err
			}
			if name := manager.GetRds().GetRouteConfigName(); name != "" {
				return name, nil
			}
		}
	}
	return "", nil
}
