package server

import (
	"encoding/json"
	"fmt"

	"github.com/pilot-api/pilot-api/discovery"
)

// nodeMetadata is what the operator of an Envoy wrote into its bootstrap. Of all
// that may stand there Istio's words are read, in capitals as they are.
type nodeMetadata map[string]json.RawMessage

// nodeBuild is what an Envoy says of its own version. It is for people: what makes
// no sense is passed over.
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

// of is the node with an id that states this.
func (m nodeMetadata) of(id string) (discovery.Node, error) {
	var namespace string
	var labels map[string]string
	if err := m.read("NAMESPACE", &namespace); err != nil {
		return discovery.Node{}, fmt.Errorf("%w, want a text", err)
	}
	if err := m.read("LABELS", &labels); err != nil {
		return discovery.Node{}, fmt.Errorf("%w, want an object whose values are texts", err)
	}
	node, err := discovery.NewNode(id, namespace, labels)
	if err != nil {
		return discovery.Node{}, fmt.Errorf("node.metadata: %w", err)
	}
	return node, nil
}

func (m nodeMetadata) read(name string, to any) error {
	text, ok := m[name]
	if !ok {
		return nil
	}
	if err := json.Unmarshal(text, to); err != nil {
		return fmt.Errorf("node.metadata.%s cannot be read", name)
	}
	return nil
}
