package mesh

import (
	"cmp"
	"container/heap"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/schema"
)

// Budget bounds what objects multiply to, in parts: entries that are built for
// proxies. docs/decisions/033-budgets.md explains it. A bound of 0 is the default.
type Budget struct {
	Object int // of one object
	Mesh   int // of all objects of the kinds that are counted together
}

// DefaultBudget is what a mesh has without a word.
var DefaultBudget = Budget{Object: schema.MaxProduct, Mesh: 10 * schema.MaxProduct}

// Or is the budget with the bounds of another one for those that it does not have.
// An object never has more than the mesh.
func (b Budget) Or(other Budget) Budget {
	out := Budget{Object: cmp.Or(b.Object, other.Object), Mesh: cmp.Or(b.Mesh, other.Mesh)}
	if b.Object == 0 {
		out.Object = min(out.Object, out.Mesh)
	}
	return out
}

// BudgetOrDefault is the budget in force.
func (s *Settings) BudgetOrDefault() Budget { return s.Budget.Or(DefaultBudget) }

// Cost is what an object multiplies to.
type Cost struct {
	Object  schema.Key
	Created time.Time
	Parts   int
}

// CostOf is the cost of an object.
func CostOf(o *schema.Object, parts int) Cost {
	return Cost{Object: o.Key(), Created: o.Meta.CreationTimestamp.Time, Parts: parts}
}

// compareCosts has first what of a namespace is withheld first: the highest cost, of equal ones the
// younger object, then the later one by kind, namespace and name.
func compareCosts(a, b Cost) int {
	return cmp.Or(
		cmp.Compare(b.Parts, a.Parts), b.Created.Compare(a.Created), cmp.Compare(b.Object.Kind, a.Object.Kind),
		compareNames(b.Object.Namespace, b.Object.Name, a.Object.Namespace, a.Object.Name))
}

// Excess is why an object is withheld. The zero Excess is that it is not.
type Excess struct {
	Parts  int  // that the object multiplies to
	Budget int  // that it exceeds; 0 when the object is not withheld
	Mesh   bool // the budget is that of the mesh, which the objects exceed together
}

// Withheld reports whether there is an excess.
func (x Excess) Withheld() bool { return x.Budget > 0 }

// Problem tells the author of an object. What multiplies is said by of, and what
// becomes of the object by effect, a sentence without a period.
func (x Excess) Problem(ref diag.Ref, of, effect string) diag.Problem {
	reason := fmt.Sprintf("an object may multiply to %s parts", schema.Thousands(x.Budget))
	if x.Mesh {
		reason = fmt.Sprintf("all objects together multiply to more than the %s parts that the mesh may have, and of the namespace with the most parts this one had the highest cost",
			schema.Thousands(x.Budget))
	}
	return diag.Problem{
		Severity: diag.Warning, Reason: diag.NotHonoured, Code: diag.OverBudget, Object: ref, Field: "spec",
		Message: fmt.Sprintf("%s: %s, which is too many: %s (budget in the mesh settings)", effect, of, reason),
	}
}

// Withheld are the objects that do not fit, each with its excess. Costs are of
// distinct objects, in any order.
func (b Budget) Withheld(costs []Cost) map[schema.Key]Excess {
	var l Ledger
	l.Budget = b
	for _, c := range costs {
		l.Set(c)
	}
	l.Settle()
	return l.withheld
}

// Ledger has the costs of objects and says which of them are withheld, as
// Budget.Withheld does, from one change to the next. To set a cost takes constant
// time. To settle takes time in proportion to what was set, unless the objects
// exceed the budget of the mesh together: then it sorts them. The zero Ledger with a
// Budget is empty.
type Ledger struct {
	Budget Budget

	costs    map[schema.Key]Cost // of objects that cost anything
	sum      int                 // of those that are within the budget of one object
	changed  map[schema.Key]bool // since they were settled
	over     map[schema.Key]bool // withheld for the budget of the mesh
	withheld map[schema.Key]Excess
}

// Set has an object cost this much from now on; no parts when it is gone.
func (l *Ledger) Set(c Cost) {
	if l.costs == nil {
		l.costs, l.changed, l.over, l.withheld = map[schema.Key]Cost{}, map[schema.Key]bool{}, map[schema.Key]bool{}, map[schema.Key]Excess{}
	}
	was := l.costs[c.Object]
	if was == c {
		return
	}
	l.sum += l.counted(c) - l.counted(was)
	l.changed[c.Object] = true
	if l.costs[c.Object] = c; c.Parts == 0 {
		delete(l.costs, c.Object)
	}
}

// counted is what a cost adds to the sum of the mesh.
func (l *Ledger) counted(c Cost) int {
	if c.Parts > l.Budget.Object {
		return 0
	}
	return c.Parts
}

// Settle decides which objects are withheld. It returns those for which that is
// otherwise than before.
func (l *Ledger) Settle() []schema.Key {
	for key := range l.over {
		l.changed[key] = true
	}
	clear(l.over)
	if l.sum > l.Budget.Mesh {
		l.withhold()
	}
	var out []schema.Key
	for key := range l.changed {
		before, now := l.withheld[key], l.decided(key)
		if before == now {
			continue
		}
		out = append(out, key)
		if l.withheld[key] = now; !now.Withheld() {
			delete(l.withheld, key)
		}
	}
	clear(l.changed)
	return out
}

// share is what the objects of a namespace cost, as far as they are not withheld.
type share struct {
	namespace string
	sum       int
	costs     []Cost // what is withheld first is first
}

// shares is a heap: the namespace that has the most is first, of equal ones the later
// one by name.
type shares []*share

func (s shares) Len() int      { return len(s) }
func (s shares) Swap(i, j int) { s[i], s[j] = s[j], s[i] }
func (s *shares) Push(x any)   { *s = append(*s, x.(*share)) }
func (s shares) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(s[j].sum, s[i].sum), cmp.Compare(s[j].namespace, s[i].namespace)) < 0
}

func (s *shares) Pop() any {
	last := (*s)[len(*s)-1]
	*s = (*s)[:len(*s)-1]
	return last
}

// withhold finds what the mesh has no room for: the object with the highest cost of the
// namespace that has the most, again and again. So a namespace with little keeps it,
// whatever others have.
func (l *Ledger) withhold() {
	all := l.shares()
	heap.Init(&all)
	for left := l.sum; left > l.Budget.Mesh; heap.Fix(&all, 0) {
		most := all[0]
		c := most.costs[0]
		most.costs = most.costs[1:]
		most.sum -= c.Parts
		left -= c.Parts
		l.over[c.Object], l.changed[c.Object] = true, true
	}
}

// shares of all namespaces.
func (l *Ledger) shares() shares {
	byName := map[string]*share{}
	for _, c := range l.costs {
		parts := l.counted(c)
		if parts == 0 {
			continue
		}
		of := byName[c.Object.Namespace]
		if of == nil {
			of = &share{namespace: c.Object.Namespace}
			byName[c.Object.Namespace] = of
		}
		of.sum += parts
		of.costs = append(of.costs, c)
	}
	for _, of := range byName {
		slices.SortFunc(of.costs, compareCosts)
	}
	return slices.Collect(maps.Values(byName))
}

// decided is why an object is withheld, as the costs are now.
func (l *Ledger) decided(key schema.Key) Excess {
	parts := l.costs[key].Parts
	switch {
	case parts > l.Budget.Object:
		return Excess{Parts: parts, Budget: l.Budget.Object}
	case l.over[key]:
		return Excess{Parts: parts, Budget: l.Budget.Mesh, Mesh: true}
	}
	return Excess{}
}

// Excess is why an object is withheld, as of the last time that costs were settled.
func (l *Ledger) Excess(key schema.Key) Excess { return l.withheld[key] }
