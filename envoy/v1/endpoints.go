package v1

import "github.com/pilot-api/pilot-api/ir"

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

// Endpoints answers SDS in the order given. Weights above 100 are cut to 100.
func Endpoints(endpoints []ir.Endpoint) EndpointsResponse {
	hosts := make([]Host, len(endpoints))
	for i, e := range endpoints {
		hosts[i] = Host{IPAddress: e.Host, Port: e.Port}
		if e.Zone != "" || e.Weight != 0 {
			hosts[i].Tags = &HostTags{AZ: e.Zone, LoadBalancingWeight: min(e.Weight, maxHostWeight)}
		}
	}
	return EndpointsResponse{Hosts: hosts}
}
