package server

import (
	"cmp"
	"fmt"

	"github.com/pilot-api/pilot-api/discovery"
)

// nodeLocality is where an Envoy says that it is.
type nodeLocality struct {
	Region       string `json:"region"`
	Zone         string `json:"zone"`
	SubZone      string `json:"sub_zone"`
	CamelSubZone string `json:"subZone"`
}

// of is the node that is there.
func (l nodeLocality) of(node discovery.Node) (discovery.Node, error) {
	out, err := node.At(l.Region, l.Zone, cmp.Or(l.SubZone, l.CamelSubZone))
	if err != nil {
		return discovery.Node{}, fmt.Errorf("node.locality: %w", err)
	}
	return out, nil
}
