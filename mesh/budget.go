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

// Budget bounds how far objects multiply, in parts: entries built for proxies.
// docs/decisions/033-budgets.md explains it. A bound of 0 means the default.
type Budget struct {
	Object int // bound of one object
	Mesh   int // bound of all objects of the kinds that are counted together
}

// DefaultBudget is the default budget of a mesh.
var DefaultBudget = Budget{Object: schema.MaxProduct, Mesh: 10 * schema.MaxProduct}

// Or returns the budget with missing bounds taken from another one. The bound of an
// object is never above that of the mesh.
func (b Budget) Or(other Budget) Budget {
	out := Budget{Object: cmp.Or(b.Object, other.Object), Mesh: cmp.Or(b.Mesh, other.Mesh)}
	if b.Object == 0 {
		out.Object = min(out.Object, out.Mesh)
	}
	return out
}

// BudgetOrDefault returns the budget in force.
func (s *Settings) BudgetOrDefault() Budget { return s.Budget.Or(DefaultBudget) }

// Cost is how far an object multiplies.
type Cost struct {
	Object  schema.Key
	Created time.Time
	Parts   int
}

// CostOf returns the cost of an object.
func CostOf(o *schema.Object, parts int) Cost {
	return Cost{Object: o.Key(), Created: o.Meta.CreationTimestamp.Time, Parts: parts}
}

// compareCosts sorts costs of a namespace in the order in which objects are
// withheld: the highest cost first, then the younger object, then the later one by
// kind, namespace and name.
func compareCosts(a, b Cost) int {
	return cmp.Or(
		cmp.Compare(b.Parts, a.Parts), b.Created.Compare(a.Created), cmp.Compare(b.Object.Kind, a.Object.Kind),
		compareNames(b.Object.Namespace, b.Object.Name, a.Object.Namespace, a.Object.Name))
}

// Excess says why an object is withheld. The zero Excess means that it is not.
type Excess struct {
	Parts  int  // parts of the object
	Budget int  // exceeded budget; 0 if the object is not withheld
	Mesh   bool // whether the objects together exceed the budget of the mesh
}

// Withheld reports whether there is an excess.
func (x Excess) Withheld() bool { return x.Budget > 0 }

// Problem returns the problem of a withheld object. of says what multiplies, and
// effect what happens to the object, as a sentence without a period.
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

// Withheld returns the objects that do not fit, each with its excess. Costs must be
// of distinct objects, in any order.
func (b Budget) Withheld(costs []Cost) map[schema.Key]Excess {
	var l Ledger
	l.Budget = b
	for _, c := range costs {
		l.Set(c)
	}
	l.Settle()
	return l.withheld
}

// Ledger keeps the costs of objects across changes and decides which of them are
// withheld, with the result of Budget.Withheld. Set takes constant time. Settle
// takes time in proportion to the number of changes; if the objects together exceed
// the budget of the mesh, it sorts them all. The zero Ledger with a Budget is
// empty.
type Ledger struct {
	Budget Budget

	costs    map[schema.Key]Cost // of objects with a cost
	sum      int                 // of costs within the budget of one object
	changed  map[schema.Key]bool // since the last Settle
	over     map[schema.Key]bool // withheld by the budget of the mesh
	withheld map[schema.Key]Excess
}

// Set sets the cost of an object; no parts means that the object is gone.
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

// counted returns what a cost adds to the sum of the mesh.
func (l *Ledger) counted(c Cost) int {
	if c.Parts > l.Budget.Object {
		return 0
	}
	return c.Parts
}

// Settle decides which objects are withheld. It returns the objects whose decision
// changed.
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

// share is the cost of the objects of a namespace that are not withheld.
type share struct {
	namespace string
	sum       int
	costs     []Cost // in the order in which they are withheld
}

// shares is a heap with the largest namespace first; of equal ones the last by
// name.
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

// withhold finds the objects that exceed the budget of the mesh. It repeatedly
// withholds the object with the highest cost in the largest namespace. So a small
// namespace keeps its objects, whatever others have.
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

// shares returns the shares of all namespaces.
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

// decided returns why an object is withheld by the present costs.
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

// Parts returns the parts of all objects that are not withheld, as of the last Settle.
func (l *Ledger) Parts() int {
	parts := l.sum
	for key := range l.over {
		parts -= l.counted(l.costs[key])
	}
	return parts
}

// Excess returns why an object is withheld as of the last Settle.
func (l *Ledger) Excess(key schema.Key) Excess { return l.withheld[key] }
