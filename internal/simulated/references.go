package simulated

import (
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"

	"github.com/pilot-api/pilot-api/discovery"
)

// references returns the names that an Envoy requests because of a response, and their
// type.
func references(r *discoveryv3.DeltaDiscoveryResponse) (typeURL string, names []string) {
	for _, one := range r.GetResources() {
		switch r.GetTypeUrl() {
		case discovery.ClusterType:
			typeURL = discovery.EndpointType
			var c clusterv3.Cluster
			if one.GetResource().UnmarshalTo(&c) == nil && c.GetType() == clusterv3.Cluster_EDS {
				name := c.GetEdsClusterConfig().GetServiceName()
				if name == "" {
					name = c.GetName()
				}
				names = append(names, name)
			}
		case discovery.ListenerType:
			typeURL = discovery.RouteType
			var l listenerv3.Listener
			if one.GetResource().UnmarshalTo(&l) == nil {
				names = append(names, tables(&l)...)
			}
		}
	}
	return typeURL, names
}

// tables returns the names of a listener's route tables.
func tables(l *listenerv3.Listener) (names []string) {
	chains := l.GetFilterChains()
	if l.GetDefaultFilterChain() != nil {
		chains = append(chains, l.GetDefaultFilterChain())
	}
	for _, chain := range chains {
		for _, filter := range chain.GetFilters() {
			var m hcmv3.HttpConnectionManager
			if filter.GetTypedConfig().UnmarshalTo(&m) == nil && m.GetRds() != nil {
				names = append(names, m.GetRds().GetRouteConfigName())
			}
		}
	}
	return names
}
