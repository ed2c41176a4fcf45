package compile

import (
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
)

// Members are the endpoints that the key of a registry cluster means in a snapshot, in
// no order of the cluster's.
func Members(s *mesh.Snapshot, key string) (all []ir.Endpoint) {
	for _, i := range s.Endpoints(mesh.ParseServiceKey(key)) {
		all = append(all, endpointOf(i))
	}
	return all
}

func endpointOf(i *mesh.Instance) ir.Endpoint {
	return ir.Endpoint{Host: i.Address, Port: i.EndpointPort, Zone: i.Zone, Weight: i.Weight, Labels: i.Labels}
}
