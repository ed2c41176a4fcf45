package v3

import (
	"cmp"
	"slices"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

	"github.com/pilot-api/pilot-api/ir"
)

// Endpoints returns the answer of EDS for one key, which is exactly the requested name. It
// also returns the inline endpoints of a cluster of that name. Endpoints of one locality
// and priority form a group. Groups are sorted by both; a group has the given order.
// Without endpoints the assignment has no groups, which empties the cluster.
func Endpoints(key string, endpoints []ir.Endpoint) *endpointv3.ClusterLoadAssignment {
	groups := map[group]*endpointv3.LocalityLbEndpoints{}
	out := &endpointv3.ClusterLoadAssignment{ClusterName: key}
	for _, e := range endpoints {
		of := group{localityOf(e.Zone), e.Priority}
		group := groups[of]
		if group == nil {
			group = &endpointv3.LocalityLbEndpoints{
				Locality: of.message(), Priority: uint32(of.priority), LoadBalancingWeight: positive(e.Share),
			}
			groups[of] = group
			out.Endpoints = append(out.Endpoints, group)
		}
		group.LbEndpoints = append(group.LbEndpoints, lbEndpoint(e))
	}
	slices.SortFunc(out.Endpoints, func(a, b *endpointv3.LocalityLbEndpoints) int {
		one, other := a.GetLocality(), b.GetLocality()
		return cmp.Or(cmp.Compare(a.GetPriority(), b.GetPriority()), strings.Compare(one.GetRegion(), other.GetRegion()),
			strings.Compare(one.GetZone(), other.GetZone()), strings.Compare(one.GetSubZone(), other.GetSubZone()))
	})
	return out
}

// group has the properties that the endpoints of a group share.
type group struct {
	locality
	priority int
}

// locality is that of an endpoint.
type locality struct{ region, zone, subZone string }

// localityOf reads region/zone/sub-zone. The last parts may be missing.
func localityOf(text string) locality {
	region, rest, _ := strings.Cut(text, "/")
	zone, subZone, _ := strings.Cut(rest, "/")
	return locality{region, zone, subZone}
}

// message returns nil if the locality is not known.
func (l locality) message() *corev3.Locality {
	if l == (locality{}) {
		return nil
	}
	return &corev3.Locality{Region: l.region, Zone: l.zone, SubZone: l.subZone}
}

func lbEndpoint(e ir.Endpoint) *endpointv3.LbEndpoint {
	out := &endpointv3.LbEndpoint{
		HostIdentifier:      &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{Address: address(e.Host, e.Port)}},
		LoadBalancingWeight: positive(e.Weight),
	}
	if e.MutualTLS {
		out.Metadata = mutualEndpoint
	}
	return out
}
