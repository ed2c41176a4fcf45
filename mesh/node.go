package mesh

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Node has what an Envoy states about itself in every request, in normal form: two
// nodes are equal if they state the same.
type Node struct {
	ID string // role~ip~id~domain
	// Namespace of the workload, or "" for that of the domain.
	Namespace string
	// Locality of the workload, as region/zone/sub-zone, or "" if it states none.
	Locality string
	// Labels of the workload, in the form of Labels.String, or "" if it states
	// none.
	Labels string
}

// Bounds of what a node states in addition to its id. A client chooses it, and it
// is kept with the results for the client. A workload of Kubernetes has some 20
// labels in less than 1 KiB.
const (
	maxNodeLabels     = 64
	maxNodeLabelsText = 4 << 10
)

// NewNode returns a node with a namespace and labels that are valid in Kubernetes,
// or "" and none. It allows up to 64 labels in 4 KiB. The error says what is wrong
// and what is allowed.
func NewNode(id, namespace string, labels Labels) (Node, error) {
	if problems := validation.IsDNS1123Label(namespace); namespace != "" && len(problems) > 0 {
		return Node{}, fmt.Errorf("namespace %s: %s", shortened(namespace), problems[0])
	}
	if len(labels) > maxNodeLabels {
		return Node{}, fmt.Errorf("%d labels, at most %d are allowed", len(labels), maxNodeLabels)
	}
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		if problems := validation.IsQualifiedName(name); len(problems) > 0 {
			return Node{}, fmt.Errorf("label name %s: %s", shortened(name), problems[0])
		}
		if problems := validation.IsValidLabelValue(labels[name]); len(problems) > 0 {
			return Node{}, fmt.Errorf("value %s of label %s: %s", shortened(labels[name]), name, problems[0])
		}
	}
	text := labels.String()
	if len(text) > maxNodeLabelsText {
		return Node{}, fmt.Errorf("labels of %d bytes, at most %d are allowed", len(text), maxNodeLabelsText)
	}
	return Node{ID: id, Namespace: namespace, Labels: text}, nil
}

const maxNodeLocality = 1 << 10

// At returns the node with a locality of up to 1 KiB without control and format
// characters. Parts of it may be empty.
func (n Node) At(region, zone, subZone string) (Node, error) {
	n.Locality = strings.TrimRight(strings.Join([]string{region, zone, subZone}, "/"), "/")
	if len(n.Locality) > maxNodeLocality {
		return Node{}, fmt.Errorf("locality of %d bytes, at most %d are allowed", len(n.Locality), maxNodeLocality)
	}
	if err := checkPrintable("locality", n.Locality); err != nil {
		return Node{}, err
	}
	return n, nil
}

// Size returns the number of bytes of its strings.
func (n Node) Size() int { return len(n.ID) + len(n.Namespace) + len(n.Locality) + len(n.Labels) }

const maxShown = 80

// shortened quotes a text that a client may have sent, and truncates it for an
// error.
func shortened(text string) string {
	if len(text) > maxShown {
		return fmt.Sprintf("%.*q…", maxShown, text)
	}
	return fmt.Sprintf("%q", text)
}
