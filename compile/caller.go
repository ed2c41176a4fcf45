package compile

import (
	"slices"

	"github.com/pilot-api/pilot-api/mesh"
)

// caller is a proxy with what tells it from others of its scope.
type caller struct {
	scope
	own []*mesh.Instance // at its address; without what does not matter to it
	// labels that its workload has beside those of its own instances, in sets
	// each of which it has at once.
	labels    []mesh.Labels
	namespace string // that its domain says; "" for none
	place     string // where it is; "" where that does not matter
}

// states reports whether the workload has all these labels at once, whatever its
// instances have.
func (c *caller) states(labels mesh.Labels) bool {
	return len(labels) == 0 || slices.ContainsFunc(c.labels, labels.SubsetOf)
}

// bears reports whether the workload has all these labels at once.
func (c *caller) bears(labels mesh.Labels) bool {
	return c.states(labels) ||
		slices.ContainsFunc(c.own, func(i *mesh.Instance) bool { return labels.SubsetOf(i.Labels) })
}
