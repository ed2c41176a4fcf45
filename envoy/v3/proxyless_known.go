package v3

import (
	"slices"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/pilot-api/pilot-api/ir"
)

// ProxylessLeadsTo returns the clusters to which a table of ProxylessRoutes sends calls.
func ProxylessLeadsTo(table proto.Message) []string {
	var all []string
	for _, h := range table.(*routev3.RouteConfiguration).GetVirtualHosts() {
		for _, r := range h.GetRoutes() {
			if name := r.GetRoute().GetCluster(); name != "" {
				all = append(all, name)
			}
			for _, w := range r.GetRoute().GetWeightedClusters().GetClusters() {
				// gRPC ignores a cluster without a weight.
				if w.GetWeight().GetValue() > 0 {
					all = append(all, w.GetName())
				}
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// ProxylessKnowing returns a table of ProxylessRoutes with one more route, which no call
// fits, to clusters. So a client has these clusters without sending them calls.
func ProxylessKnowing(table proto.Message, clusters []string) proto.Message {
	out := proto.Clone(table).(*routev3.RouteConfiguration)
	split := &routev3.WeightedCluster{}
	for _, name := range clusters {
		split.Clusters = append(split.Clusters, &routev3.WeightedCluster_ClusterWeight{Name: name, Weight: wrapperspb.UInt32(1)})
	}
	const both = "x-no-call"
	never := ir.Match{Headers: []ir.HeaderMatch{{Name: both, Present: true}, {Name: both, Present: true, Not: true}}}
	for _, h := range out.VirtualHosts {
		h.Routes = append(h.Routes, &routev3.Route{
			Match: routeMatch(never),
			Action: &routev3.Route_Route{Route: &routev3.RouteAction{
				ClusterSpecifier: &routev3.RouteAction_WeightedClusters{WeightedClusters: split},
			}},
		})
	}
	return out
}

// ProxylessAsks returns the name by which a cluster of ProxylessCluster requests its
// endpoints, or "" if it does not.
func ProxylessAsks(cluster proto.Message) string {
	return cluster.(*clusterv3.Cluster).GetEdsClusterConfig().GetServiceName()
}
