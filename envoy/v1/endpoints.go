package v1

import (
	"math"

	"github.com/pilot-api/pilot-api/ir"
)

// EndpointsResponse is the answer of SDS.
type EndpointsResponse struct {
	Hosts []Host `json:"hosts"`
}

// Host is one endpoint.
type Host struct {
	IPAddress string    `json:"ip_address"`
	Port      int       `json:"port"`
	Tags      *HostTags `json:"tags,omitempty"`
}

// HostTags are further properties of an endpoint.
type HostTags struct {
	AZ                  string `json:"az,omitempty"`
	LoadBalancingWeight int    `json:"load_balancing_weight,omitempty"`
}

// maxHostWeight is the largest weight that v1 accepts.
const maxHostWeight = 100

// Endpoints returns the answer of SDS, in the given order. If a weight is larger than v1
// accepts, all weights are reduced in proportion.
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

// scaled returns a weight in proportion to the heaviest, which becomes the largest that
// v1 accepts. The result is at least 1, which is also the weight if none is set.
func scaled(weight, heaviest int) int {
	if weight == 0 || heaviest == maxHostWeight {
		return weight
	}
	return max(1, int(math.Round(float64(weight)*maxHostWeight/float64(heaviest))))
}
