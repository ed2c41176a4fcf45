package discovery

import (
	"fmt"

	"github.com/pilot-api/pilot-api/mesh"
)

// Node is the statement that an Envoy makes about itself in every request.
type Node = mesh.Node

// NamespaceOf returns the namespace that the proxy of a node states, or "" if it is not
// known. The error is ErrBadNode.
func (p *Publisher) NamespaceOf(node Node) (string, error) {
	proxy, err := parseNode(node)
	if err != nil {
		return "", err
	}
	return p.opts.Settings.NamespaceOf(proxy), nil
}

// TrustDomain returns the trust domain of the SPIFFE IDs of this mesh's proxies.
func (p *Publisher) TrustDomain() string { return p.opts.Settings.SPIFFETrustDomain() }

// RootNamespace returns the namespace whose rules apply to the whole mesh.
func (p *Publisher) RootNamespace() string { return p.opts.Settings.RootNamespace }

// NewNode returns a node that states a namespace and labels of its workload. The namespace
// may be "", and there may be no labels. The error is ErrBadNode if no workload can have
// them.
func NewNode(id, namespace string, labels map[string]string) (Node, error) {
	node, err := mesh.NewNode(id, namespace, labels)
	if err != nil {
		err = fmt.Errorf("%w: %w", ErrBadNode, err)
	}
	return node, err
}

// The names in node.metadata that the server reads. They are those of Istio, in capitals.
// An operator may write any of them into a bootstrap.
const (
	MetadataNamespace = "NAMESPACE"
	MetadataLabels    = "LABELS"
)

// NodeStatement is the statement of a request about its proxy, over any transport.
type NodeStatement struct {
	ID string
	// Metadata has the values of node.metadata by name, as encoding/json decodes them; nil
	// for missing ones.
	Metadata              func(name string) any
	Region, Zone, SubZone string
}

// Node returns the node of the statement. The error is ErrBadNode if no proxy can state it.
func (s NodeStatement) Node() (Node, error) {
	namespace, err := metadataText(MetadataNamespace, s.Metadata(MetadataNamespace))
	if err != nil {
		return Node{}, err
	}
	labels, err := metadataTexts(MetadataLabels, s.Metadata(MetadataLabels))
	if err != nil {
		return Node{}, err
	}
	node, err := NewNode(s.ID, namespace, labels)
	if err != nil {
		return Node{}, err
	}
	if node, err = node.At(s.Region, s.Zone, s.SubZone); err != nil {
		return Node{}, fmt.Errorf("%w: node.locality: %w", ErrBadNode, err)
	}
	return node, nil
}

func metadataText(name string, v any) (string, error) {
	text, ok := v.(string)
	if !ok && v != nil {
		return "", fmt.Errorf("%w: node.metadata.%s must be a text", ErrBadNode, name)
	}
	return text, nil
}

func metadataTexts(name string, v any) (map[string]string, error) {
	values, ok := v.(map[string]any)
	if !ok && v != nil {
		return nil, fmt.Errorf("%w: node.metadata.%s must be an object whose values are texts", ErrBadNode, name)
	}
	texts := make(map[string]string, len(values))
	for field, value := range values {
		var err error
		if texts[field], err = metadataText(name+"."+field, value); err != nil {
			return nil, err
		}
	}
	return texts, nil
}
