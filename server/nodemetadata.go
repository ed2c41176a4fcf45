package server

import (
	"encoding/json"
	"fmt"

	"github.com/pilot-api/pilot-api/discovery"
)

// nodeMetadata is what the operator of an Envoy wrote into its bootstrap. Of all
// that may stand there Istio's words are read, in capitals as they are.
type nodeMetadata map[string]json.RawMessage

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
