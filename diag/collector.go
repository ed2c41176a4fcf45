package diag

import (
	"fmt"
	"maps"
	"slices"
)

// MaxPerObject is how many problems of one object a Collector keeps, besides the
// first one of each further code. It is more than anybody reads, and small enough
// that no object fills the memory with problems.
const MaxPerObject = 100

// Collector gathers problems. For each object it keeps the first MaxPerObject
// problems, and after those the first one of each code that is not yet among them,
// so that the reader learns of everything that is wrong. It counts the rest. The
// zero Collector is empty.
type Collector struct {
	list List
	// found counts the problems of each object, and codes holds the codes of the
	// problems that are kept. Both are nil until there are so many problems that
	// one object could exceed the limit: most Collectors have a handful.
	found map[Ref]int
	codes map[coded]bool
}

// coded identifies a code within an object.
type coded struct {
	object Ref
	code   Code
}

// Add adds problems.
func (c *Collector) Add(problems ...Problem) {
	if c.found == nil && len(c.list)+len(problems) <= MaxPerObject {
		c.list = append(c.list, problems...)
		return
	}
	c.count()
	for _, p := range problems {
		c.found[p.Object]++
		if kind := (coded{p.Object, p.Code}); c.found[p.Object] <= MaxPerObject || !c.codes[kind] {
			c.codes[kind] = true
			c.list = append(c.list, p)
		}
	}
}

// count starts the counting, if it has not started.
func (c *Collector) count() {
	if c.found != nil {
		return
	}
	c.found, c.codes = map[Ref]int{}, map[coded]bool{}
	for _, p := range c.list {
		c.found[p.Object]++
		c.codes[coded{p.Object, p.Code}] = true
	}
}

// Found returns a compact copy for a Collector that gets no more problems. It
// returns nil if there are none; readers treat nil as an empty Collector.
func (c *Collector) Found() *Collector {
	if len(c.list) == 0 {
		return nil
	}
	return &Collector{list: slices.Clone(c.list), found: c.found, codes: c.codes}
}

// Merge adds the problems and counts of another Collector, as if they had been
// added here.
func (c *Collector) Merge(other *Collector) {
	if other == nil {
		return
	}
	c.Add(other.list...)
	for ref, n := range other.leftOut() {
		c.count()
		c.found[ref] += n
	}
}

// MergeOf adds the problems and counts that another Collector has for the given
// objects, as if they had been added here.
func (c *Collector) MergeOf(other *Collector, objects map[Ref]bool) {
	if other == nil {
		return
	}
	for _, p := range other.list {
		if objects[p.Object] {
			c.Add(p)
		}
	}
	for ref, n := range other.leftOut() {
		if objects[ref] {
			c.count()
			c.found[ref] += n
		}
	}
}

// Equal reports whether both have received the same problems in the same order.
func (c *Collector) Equal(other *Collector) bool {
	if c == other || c == nil || other == nil {
		return c == other || c.empty() && other.empty()
	}
	return slices.Equal(c.list, other.list) && maps.Equal(c.leftOut(), other.leftOut())
}

func (c *Collector) empty() bool { return c == nil || len(c.list) == 0 }

// leftOut returns how many problems of each object are not kept, for objects with
// any.
func (c *Collector) leftOut() map[Ref]int {
	out := map[Ref]int{}
	for ref, n := range c.found {
		if n > MaxPerObject {
			out[ref] = n
		}
	}
	if len(out) == 0 {
		return out
	}
	for _, p := range c.list {
		if n, much := out[p.Object]; much && n == 1 {
			delete(out, p.Object) // All of them are kept.
		} else if much {
			out[p.Object] = n - 1
		}
	}
	return out
}

// List returns the kept problems in the order in which they were added, then one
// problem for each object with problems left out. The caller owns the list.
func (c *Collector) List() List {
	out, leftOut := append(List(nil), c.list...), c.leftOut()
	if len(leftOut) == 0 {
		return out
	}
	for _, p := range c.list {
		if left := leftOut[p.Object]; left > 0 {
			delete(leftOut, p.Object)
			out = append(out, Problem{
				Severity: Warning, Reason: NotHonoured, Code: p.Code, Object: p.Object,
				Message: fmt.Sprintf("%d more problems of the object are not listed", left),
			})
		}
	}
	return out
}
