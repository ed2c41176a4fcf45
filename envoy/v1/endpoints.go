package v1

import (
	"math"

	"github.com/pilot-api/pilot-api/ir"
)

// EndpointsResponse answers SDS.
type EndpointsResponse struct {
	Hosts []Host `json:"hosts"`
}

// Host is one endpoint.
type Host struct {
	IPAddress string    `json:"ip_address"`
	Port      int       `json:"port"`
	Tags      *HostTags `json:"tags,omitempty"`
}

// HostTags say more about an endpoint.
type HostTags struct {
	AZ                  string `json:"az,omitempty"`
	LoadBalancingWeight int    `json:"load_balancing_weight,omitempty"`
}

// maxHostWeight is the largest that v1 takes.
const maxHostWeight = 100

// Endpoints answers SDS in the order given. Where one weighs more than v1 takes,
// all become smaller in proportion.
func Endpoints(endpoints []ir.Endpoint) EndpointsResponse {
	heaviest := maxHostWeight
	for _, e := range endpoints {
		heaviest = max(heaviest, e.Weight)
	}
	hosts := make([]Host, len(endpoints))
	for i, e := range endpoints {
		hosts[i] = Host{IPAddress: e.Host, Port: e.Port}
		if e.Zone != "" || e.Weight != 0 {
			hosts[i].Tags = &HostTags{AZ: e.Zone, LoadBalancingWeight: scaled(e.Weight, heaviest)}
		}
	}
	return EndpointsResponse{Hosts: hosts}
}

// scaled is what a weight is of the heaviest, as a share of the largest that v1
// takes: 1 at least, which is also what no weight is.
func scaled(weight, heaviest int) int {
	if weight == 0 || heaviest == maxHostWeight {
		return weight
	}
	return max(1, int(math.Round(float64(weight)*maxHostWeight/float64(heaviest))))
}
