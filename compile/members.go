package compile

import (
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
)

// Members returns the endpoints of a registry cluster's key in a snapshot, without
// the cluster's own order.
func Members(s *mesh.Snapshot, key string) (all []ir.Endpoint) {
	for _, i := range s.Endpoints(mesh.ParseServiceKey(key)) {
		all = append(all, endpointOf(i))
	}
	return all
}

func endpointOf(i *mesh.Instance) ir.Endpoint {
	return ir.Endpoint{Host: i.Address, Port: i.EndpointPort, Zone: i.Zone, Weight: i.Weight, Labels: i.Labels, MutualTLS: i.MutualTLS}
}
