package diag

import (
	"fmt"
	"maps"
	"slices"
)

// MaxPerObject is how many problems of one object a Collector keeps: more than
// anybody reads, and few enough that no object fills the memory with them.
const MaxPerObject = 100

// Collector gathers problems. Of each object it keeps the first MaxPerObject
// and counts the others. The zero Collector is empty.
type Collector struct {
	list  List
	found map[Ref]int
}

// Add takes problems in.
func (c *Collector) Add(problems ...Problem) {
	if len(problems) == 0 {
		return
	}
	if c.found == nil {
		c.found = map[Ref]int{}
	}
	for _, p := range problems {
		c.found[p.Object]++
		if c.found[p.Object] <= MaxPerObject {
			c.list = append(c.list, p)
		}
	}
}

// Merge takes in what another Collector has, as if it had come here.
func (c *Collector) Merge(other *Collector) {
	if len(other.list) == 0 {
		return
	}
	c.Add(other.list...)
	for ref, n := range other.found {
		c.found[ref] += max(0, n-MaxPerObject)
	}
}

// Equal reports whether both have met the same problems in the same order.
func (c *Collector) Equal(other *Collector) bool {
	return slices.Equal(c.list, other.list) && maps.Equal(c.found, other.found)
}

// List has what was kept, in the order in which it came, and behind that a
// problem for each object of which some were left out. It is the caller's.
func (c *Collector) List() List {
	out, told := append(List(nil), c.list...), map[Ref]bool{}
	for _, p := range c.list {
		if left := c.found[p.Object] - MaxPerObject; left > 0 && !told[p.Object] {
			told[p.Object] = true
			out = append(out, Problem{
				Severity: Warning, Reason: NotHonoured, Code: p.Code, Object: p.Object,
				Message: fmt.Sprintf("%d more problems of the object are not listed", left),
			})
		}
	}
	return out
}
