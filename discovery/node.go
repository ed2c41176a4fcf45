package discovery

import (
	"fmt"

	"github.com/pilot-api/pilot-api/mesh"
)

// Node is what an Envoy says of itself in every request.
type Node = mesh.Node

// NewNode is one that states a namespace and labels of its workload, or "" and
// none. The error is ErrBadNode for what no workload has.
func NewNode(id, namespace string, labels map[string]string) (Node, error) {
	node, err := mesh.NewNode(id, namespace, labels)
	if err != nil {
		err = fmt.Errorf("%w: %w", ErrBadNode, err)
	}
	return node, err
}
