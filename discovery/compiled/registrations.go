package compiled

import (
	"cmp"
	"slices"

	"github.com/pilot-api/pilot-api/envoy/v1"
	"github.com/pilot-api/pilot-api/mesh"
)

// registration is one port of a service in the list of all services.
type registration struct {
	Key string `json:"service-key"`
	v1.EndpointsResponse
}

func (g *Generation) AllRegistrations() []registration {
	all := []registration{}
	for _, service := range g.Mesh.Services {
		if service.External || service.Resolution != mesh.Static {
			continue
		}
		for _, port := range service.Ports {
			key := mesh.NewServiceKey(service, port, nil).String()
			all = append(all, registration{key, v1.Endpoints(g.Endpoints.Of(key).members)})
		}
	}
	slices.SortFunc(all, func(a, b registration) int { return cmp.Compare(a.Key, b.Key) })
	return all
}
