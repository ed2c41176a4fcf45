package v3

import (
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/envoy"
	"github.com/pilot-api/pilot-api/ir"
)

// The files proxyless*.go are for programs that use gRPC without a proxy. They get the same
// IR in the same messages, of which they know less, and ignore the rest. So these files
// find what gRPC ignores, close it where it matters, and report it
// (docs/decisions/022-proxyless-grpc.md).

// ProxylessListener returns the API listener of a target. Its routes are in a table.
func ProxylessListener(target, table string) *listenerv3.Listener {
	return &listenerv3.Listener{
		Name: target,
		ApiListener: &listenerv3.ApiListener{ApiListener: typed(&hcmv3.HttpConnectionManager{
			StatPrefix: envoy.StatPrefixHTTP,
			HttpFilters: []*hcmv3.HttpFilter{
				httpFilter(faultFilter, noFault),
				httpFilter(routerFilter, routing),
			},
			RouteSpecifier: &hcmv3.HttpConnectionManager_Rds{Rds: &hcmv3.Rds{
				RouteConfigName: table, ConfigSource: Streamed.config(),
			}},
		})},
	}
}

// ProxylessRoutes returns the table with one virtual host, under its name. The listener has
// decided what a target means, so the virtual host has all domains.
func ProxylessRoutes(h *ir.VirtualHost) (*routev3.RouteConfiguration, diag.List) {
	host := &routev3.VirtualHost{Name: h.Name, Domains: []string{"*"}}
	var problems diag.List
	for _, r := range h.Routes {
		encoded, p := proxylessRoute(r)
		host.Routes, problems = append(host.Routes, encoded...), append(problems, p...)
	}
	return &routev3.RouteConfiguration{Name: h.Name, VirtualHosts: []*routev3.VirtualHost{host}}, problems
}

// ProxylessCluster returns a cluster. Its endpoints are those of EndpointsName, unless they
// are behind a name in the DNS.
func ProxylessCluster(c *ir.Cluster) (*clusterv3.Cluster, diag.List) {
	why := beyondProxyless(c)
	if why != "" {
		closed, _ := ProxylessCluster(c.Closed())
		return closed, diag.Warn(diag.NotHonoured, c.Origins, "cluster %s has no endpoints for gRPC without a proxy: %s", c.Name, why)
	}
	out := &clusterv3.Cluster{
		Name:             envoy.ClusterName(c.Name),
		CircuitBreakers:  circuitBreakers(c.CircuitBreaker),
		OutlierDetection: outlierDetection(c.OutlierDetection),
	}
	proxylessBalance(out, c)
	if named(c) {
		out.ClusterDiscoveryType = &clusterv3.Cluster_Type{Type: clusterv3.Cluster_LOGICAL_DNS}
		out.LoadAssignment = Endpoints(out.Name, c.Hosts)
	} else {
		out.ClusterDiscoveryType = &clusterv3.Cluster_Type{Type: clusterv3.Cluster_EDS}
		out.EdsClusterConfig = &clusterv3.Cluster_EdsClusterConfig{ServiceName: proxylessEndpointsName(c), EdsConfig: Streamed.config()}
	}
	return out, proxylessLosses(c)
}
