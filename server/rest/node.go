package rest

import (
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/pilot-api/pilot-api/discovery"
)

// pollNode is the node of a poll: the proxy that polls.
type pollNode struct {
	ID string `json:"id"`
	// Little of the metadata is read. Its names are case-sensitive.
	Metadata map[string]json.RawMessage `json:"metadata"`
	Build    nodeBuild                  `json:"user_agent_build_version"`
	Locality struct {
		Region       string `json:"region"`
		Zone         string `json:"zone"`
		SubZone      string `json:"sub_zone"`
		CamelSubZone string `json:"subZone"`
	} `json:"locality"`
}

func (n *pollNode) node() (discovery.Node, error) {
	at := n.Locality
	return discovery.NodeStatement{
		ID: n.ID, Metadata: n.metadata,
		Region: at.Region, Zone: at.Zone, SubZone: cmp.Or(at.SubZone, at.CamelSubZone),
	}.Node()
}

func (n *pollNode) metadata(name string) any {
	text, ok := n.Metadata[name]
	if !ok {
		return nil
	}
	var v any
	if json.Unmarshal(text, &v) != nil {
		return text // A number out of range; it is not a string either.
	}
	return v
}

// nodeBuild is the version that an Envoy reports for itself. It is for people, so
// invalid values are ignored.
type nodeBuild json.RawMessage

func (b *nodeBuild) UnmarshalJSON(text []byte) error {
	*b = nodeBuild(text)
	return nil
}

func (b nodeBuild) String() string {
	var in struct {
		Version struct {
			Major int `json:"major_number"`
			Minor int `json:"minor_number"`
			Patch int `json:"patch"`
		} `json:"version"`
	}
	if json.Unmarshal(b, &in) != nil || in.Version.Major == 0 && in.Version.Minor == 0 {
		return ""
	}
	return fmt.Sprintf("%d.%d.%d", in.Version.Major, in.Version.Minor, in.Version.Patch)
}
