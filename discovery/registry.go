package discovery

import (
	"cmp"
	"errors"

	"github.com/pilot-api/pilot-api/discovery/xds"
	"github.com/pilot-api/pilot-api/mesh"
)

// V1Registrations lists the instances of every service of the mesh, sorted by service key.
// It is only for people: no Envoy asks for it. As in Pilot, services outside the mesh, or
// found by DNS, are not in it.
func (p *Publisher) V1Registrations() (xds.Answer, error) {
	g, err := p.published()
	if err != nil {
		return xds.Answer{}, err
	}
	a, err := g.Registrations.Get(func() (*xds.Answer, error) {
		a, err := xds.EncodeV1(g.AllRegistrations())
		return &a, err
	})
	if err != nil {
		return xds.Answer{}, err
	}
	return *a, nil
}

// Zone returns the availability zone of the proxy with a node: that of the workload beside
// it, or "" if it is unknown. A proxy without a workload has no zone, which is an error in
// Pilot's words. Before the first snapshot, the error says why the source cannot be read.
func (p *Publisher) Zone(node string) (string, error) {
	proxy, err := parseNode(mesh.Node{ID: node})
	if err != nil {
		return "", err
	}
	g, err := p.published()
	if err != nil {
		return "", cmp.Or(p.opts.Source.Err(), err)
	}
	own := g.Mesh.TraitsOf(proxy).Instances
	if len(own) == 0 {
		return "", errors.New("couldn't find the given cluster node")
	}
	return own[0].Zone, nil
}
