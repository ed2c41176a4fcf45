package discovery

import (
	"cmp"
	"errors"
	"slices"

	"github.com/pilot-api/pilot-api/discovery/xds"
	"github.com/pilot-api/pilot-api/envoy/v1"
	"github.com/pilot-api/pilot-api/mesh"
)

// registration is one port of a service in the list of all.
type registration struct {
	Key string `json:"service-key"`
	v1.EndpointsResponse
}

// V1Registrations lists the instances of every service of the mesh, sorted by
// service key. It is for people: no Envoy asks for it. As in Pilot, services
// outside the mesh, or found by DNS, are not in it.
func (s *Publisher) V1Registrations() (xds.Answer, error) {
	g, err := s.published()
	if err != nil {
		return xds.Answer{}, err
	}
	a, err := g.registrations.Get(func() (*xds.Answer, error) {
		a, err := xds.EncodeV1(g.allRegistrations())
		return &a, err
	})
	if err != nil {
		return xds.Answer{}, err
	}
	return *a, nil
}

func (g *generation) allRegistrations() []registration {
	all := []registration{}
	for _, service := range g.mesh.Services {
		if service.External || service.Resolution != mesh.Static {
			continue
		}
		for _, port := range service.Ports {
			key := mesh.NewServiceKey(service, port, nil).String()
			all = append(all, registration{key, v1.Endpoints(g.endpoints.of(key).members)})
		}
	}
	slices.SortFunc(all, func(a, b registration) int { return cmp.Compare(a.Key, b.Key) })
	return all
}

// Zone is the availability zone of the proxy that calls itself node: that of
// the workload beside it, "" if unknown. A proxy beside nothing has none, which
// is an error, in Pilot's words. Before the first snapshot the error is why
// the source cannot be read.
func (s *Publisher) Zone(node string) (string, error) {
	proxy, err := parseNode(mesh.Node{ID: node})
	if err != nil {
		return "", err
	}
	g, err := s.published()
	if err != nil {
		return "", cmp.Or(s.opts.Source.Err(), err)
	}
	own := g.mesh.View(proxy).Instances
	if len(own) == 0 {
		return "", errors.New("couldn't find the given cluster node")
	}
	return own[0].Zone, nil
}
