package compile

import (
	"maps"
	"math/bits"
	"slices"

	"github.com/pilot-api/pilot-api/compile/query"
	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// cost is how far an object multiplies beyond its own text.
type cost struct {
	parts   int
	factors string // what is multiplied, in words; "" if there is nothing to report
}

// budget decides which objects are withheld. It counts before anything is built:
// costs are queries over lengths and indexes, and a change recomputes only a few of
// them. The decisions are inputs of everything that is built.
type budget struct {
	ledger   mesh.Ledger
	accounts []func(*query.Reader)
	withheld *query.Input[schema.Key, mesh.Excess]
}

func newBudget(m *model) *budget {
	return &budget{
		ledger:   mesh.Ledger{Budget: m.settings.BudgetOrDefault()},
		withheld: query.NewInput[schema.Key, mesh.Excess](m.graph),
	}
}

// settle updates the decisions. It must be called within graph.Do, after all inputs
// are set.
func (b *budget) settle(r *query.Reader) {
	for _, ask := range b.accounts {
		ask(r)
	}
	for _, key := range b.ledger.Settle() {
		b.withheld.Set(key, b.ledger.Excess(key))
	}
}

// account has the costs of the rules of one kind.
type account[T any] struct {
	declaration func(*T) declared
	costs       *query.Query[*T, cost]
	budget      *budget
	fresh       map[*T]bool // rules whose costs have never been computed
}

// newAccount counts the rules of a kind.
func newAccount[T any](m *model, k *kind[T], of func(*T) declared, costOf func(*plan, *T) cost) *account[T] {
	a := &account[T]{declaration: of, costs: newQuery(m, equal, costOf), budget: m.budget, fresh: map[*T]bool{}}
	k.take = append(k.take, a.update)
	m.budget.accounts = append(m.budget.accounts, a.ask)
	return a
}

func (a *account[T]) update(changes []change[T]) {
	for _, ch := range changes {
		if ch.before != nil {
			a.costs.Drop(ch.before)
			delete(a.fresh, ch.before)
			a.budget.ledger.Set(mesh.CostOf(a.declaration(ch.before).object, 0))
		}
	}
	for _, ch := range changes {
		if ch.after != nil {
			a.fresh[ch.after] = true
		}
	}
}

// ask recomputes the costs that may have changed.
func (a *account[T]) ask(r *query.Reader) {
	for _, rule := range slices.AppendSeq(a.costs.Doubted(), maps.Keys(a.fresh)) {
		a.budget.ledger.Set(mesh.CostOf(a.declaration(rule).object, a.costs.Keep(r, rule).parts))
	}
	clear(a.fresh)
}

// excess returns why an object is withheld, or the zero Excess if it is not.
func (rd *reader) excess(of declared) mesh.Excess {
	return rd.budget.withheld.Get(rd.r, of.object.Key())
}

func (rd *reader) withheld(of declared) bool { return rd.excess(of).Withheld() }

// reportExcess reports what multiplies in an object, and the effect.
func (rp *reporter) reportExcess(excess mesh.Excess, ref diag.Ref, c cost, effect string) {
	rp.report(excess.Problem(ref, c.factors, effect))
}

// endless is the upper bound of a product, so that sums of many products fit into
// an int.
const endless = 1 << 40

// times returns the product of two lengths, at most endless.
func times(a, b int) int {
	high, low := bits.Mul64(uint64(a), uint64(b))
	if high > 0 || low > endless {
		return endless
	}
	return int(low)
}

// kib is the number of bytes of text that count as one part.
const kib = 1024
