package v3

import (
	"slices"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

	"github.com/pilot-api/pilot-api/ir"
)

// Endpoints answers EDS for one key, byte for byte the name that was asked for.
// Endpoints of one zone form a group; groups are sorted by zone, within one the
// order given holds. No endpoints is an assignment without groups, which empties
// the cluster.
func Endpoints(key string, endpoints []ir.Endpoint) *endpointv3.ClusterLoadAssignment {
	byZone := map[string]*endpointv3.LocalityLbEndpoints{}
	out := &endpointv3.ClusterLoadAssignment{ClusterName: key}
	for _, e := range endpoints {
		group := byZone[e.Zone]
		if group == nil {
			group = &endpointv3.LocalityLbEndpoints{Locality: locality(e.Zone)}
			byZone[e.Zone] = group
			out.Endpoints = append(out.Endpoints, group)
		}
		member := lbEndpoint(ir.HostPort{Host: e.IP, Port: e.Port})
		member.LoadBalancingWeight = positive(e.Weight)
		group.LbEndpoints = append(group.LbEndpoints, member)
	}
	slices.SortFunc(out.Endpoints, func(a, b *endpointv3.LocalityLbEndpoints) int {
		return strings.Compare(a.GetLocality().GetZone(), b.GetLocality().GetZone())
	})
	return out
}

func locality(zone string) *corev3.Locality {
	if zone == "" {
		return nil
	}
	return &corev3.Locality{Zone: zone}
}

// inlineEndpoints are the hosts that a cluster has without asking.
func inlineEndpoints(cluster string, hosts []ir.HostPort) *endpointv3.ClusterLoadAssignment {
	out := &endpointv3.ClusterLoadAssignment{ClusterName: cluster}
	if len(hosts) == 0 {
		return out
	}
	group := &endpointv3.LocalityLbEndpoints{}
	for _, h := range hosts {
		group.LbEndpoints = append(group.LbEndpoints, lbEndpoint(h))
	}
	out.Endpoints = append(out.Endpoints, group)
	return out
}

func lbEndpoint(h ir.HostPort) *endpointv3.LbEndpoint {
	return &endpointv3.LbEndpoint{HostIdentifier: &endpointv3.LbEndpoint_Endpoint{
		Endpoint: &endpointv3.Endpoint{Address: address(h.Host, h.Port)},
	}}
}
