package compile

import (
	"slices"

	"github.com/pilot-api/pilot-api/mesh"
)

// caller is a proxy, with what distinguishes it from others of its scope.
type caller struct {
	scope
	own []*mesh.Instance // instances at its address, without the parts that do not affect it
	// labels are sets of labels that its workload has in addition to those of its
	// own instances. It has all labels of a set at once.
	labels    []mesh.Labels
	namespace string // from its domain; "" if the domain has none
	locality  string // its location; "" if that does not matter
	// called are the hosts for which it has routes and clusters; nil for all.
	called *mesh.Called
}

// states reports whether the workload itself has all these labels at once,
// regardless of its instances.
func (c *caller) states(labels mesh.Labels) bool {
	return len(labels) == 0 || slices.ContainsFunc(c.labels, labels.SubsetOf)
}

// bears reports whether the workload or one of its instances has all these labels
// at once.
func (c *caller) bears(labels mesh.Labels) bool {
	return c.states(labels) ||
		slices.ContainsFunc(c.own, func(i *mesh.Instance) bool { return labels.SubsetOf(i.Labels) })
}
