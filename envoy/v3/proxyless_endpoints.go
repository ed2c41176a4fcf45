package v3

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/pilot-api/pilot-api/ir"
)

// alike has the properties that the endpoints of a group share. Within a locality gRPC
// ignores weights, so each weight becomes a locality of its own.
type alike struct {
	priority int
	locality
	weight int
}

// message returns a locality with a name, without which gRPC refuses it.
func (a alike) message() *corev3.Locality {
	out := &corev3.Locality{Region: a.region, Zone: a.zone, SubZone: a.subZone}
	if a.weight > 1 {
		out.SubZone += fmt.Sprintf("#%d", a.weight)
	}
	return out
}

func (a alike) compare(b alike) int {
	return cmp.Or(cmp.Compare(a.priority, b.priority), cmp.Compare(a.region, b.region), cmp.Compare(a.zone, b.zone),
		cmp.Compare(a.subZone, b.subZone), cmp.Compare(a.weight, b.weight))
}

// ProxylessEndpoints is Endpoints for gRPC: its localities have names and weights,
// and no priority is left out.
func ProxylessEndpoints(key string, endpoints []ir.Endpoint) *endpointv3.ClusterLoadAssignment {
	groups := map[alike][]ir.Endpoint{}
	for _, e := range endpoints {
		of := alike{e.Priority, localityOf(e.Zone), max(1, e.Weight)}
		groups[of] = append(groups[of], e)
	}
	out := &endpointv3.ClusterLoadAssignment{ClusterName: key}
	weights := weightsOf(groups)
	priority, last := -1, math.MinInt
	for _, of := range slices.SortedFunc(maps.Keys(groups), alike.compare) {
		if weights[of] == 0 {
			continue
		}
		if of.priority != last {
			priority, last = priority+1, of.priority
		}
		group := &endpointv3.LocalityLbEndpoints{
			Locality: of.message(), Priority: uint32(priority), LoadBalancingWeight: wrapperspb.UInt32(weights[of]),
		}
		for _, e := range groups[of] {
			e.Weight = 0
			group.LbEndpoints = append(group.LbEndpoints, lbEndpoint(e))
		}
		out.Endpoints = append(out.Endpoints, group)
	}
	return out
}

// most is about the sum to which the weights of a priority are scaled if they are not whole
// numbers or are too large. gRPC accepts a sum of up to 2^32.
const most = 1_000_000

// weightsOf returns the weights of groups: the sum of the weights of their endpoints, as a
// part of the share of their locality if localities have shares. A locality without a share then
// gets nothing.
func weightsOf(groups map[alike][]ir.Endpoint) map[alike]uint32 {
	type where struct {
		priority int
		locality
	}
	own, ofLocality, shares := map[alike]float64{}, map[where]float64{}, map[int]bool{}
	for of, list := range groups {
		own[of] = float64(of.weight) * float64(len(list))
		ofLocality[where{of.priority, of.locality}] += own[of]
		shares[of.priority] = shares[of.priority] || list[0].Share > 0
	}
	sums, broken := map[int]float64{}, map[int]bool{}
	for of, list := range groups {
		if shares[of.priority] {
			own[of] *= float64(list[0].Share) / ofLocality[where{of.priority, of.locality}]
		}
		sums[of.priority] += own[of]
		broken[of.priority] = broken[of.priority] || own[of] != math.Trunc(own[of])
	}
	out := map[alike]uint32{}
	for of := range groups {
		scale := 1.0
		if sum := sums[of.priority]; broken[of.priority] || sum > most {
			scale = most / sum
		}
		if own[of] > 0 {
			out[of] = max(1, uint32(math.Round(own[of]*scale)))
		}
	}
	return out
}
