package mesh

import (
	"maps"
	"slices"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/schema"
)

// withholding decides which entries exceed the budget, before any part of them is
// built. Such an entry keeps its hosts and ports, without endpoints. If that is
// still too much, it keeps only its ports, and proxies refuse unknown destinations
// at them.
type withholding struct {
	whole  Ledger // costs of entries as written
	bare   Ledger // costs of withheld entries without endpoints
	closed map[*entry]bool
	ports  *ClosedPorts // ports of closed entries
}

func newWithholding(b Budget) withholding {
	return withholding{whole: Ledger{Budget: b}, bare: Ledger{Budget: b}, closed: map[*entry]bool{}}
}

// withhold touches the entries whose decision changed. The cost of an entry depends
// on no decision, so the order of changes has no effect.
func (r *registry) withhold(t *touched) {
	w := &r.withheld
	for e := range t.entries {
		w.whole.Set(CostOf(e.Object, e.product().Parts()))
	}
	r.touchAll(w.whole.Settle(), t)
	for e := range t.entries {
		parts := 0
		if w.has(e) {
			parts = schema.MultipliesWithheld(e.spec).Parts()
		}
		w.bare.Set(CostOf(e.Object, parts))
	}
	r.touchAll(w.bare.Settle(), t)
	for e := range t.entries {
		switch closed := w.isClosed(e); {
		case !closed:
			w.open(e)
		case !w.closed[e]:
			w.closed[e], w.ports = true, nil
		}
	}
	if w.ports == nil {
		w.ports = w.closedPorts(r.settings)
	}
}

func (r *registry) touchAll(keys []schema.Key, t *touched) {
	for _, key := range keys {
		if e := r.entries[key]; e != nil && e.spec != nil {
			t.touch(e)
		}
	}
}

// forget removes an entry that is gone.
func (w *withholding) forget(e *entry) {
	w.whole.Set(CostOf(e.Object, 0))
	w.bare.Set(CostOf(e.Object, 0))
	w.open(e)
}

func (w *withholding) open(e *entry) {
	if w.closed[e] {
		delete(w.closed, e)
		w.ports = nil
	}
}

func (w *withholding) has(e *entry) bool { return w.whole.Excess(e.Key()).Withheld() }

// isClosed reports whether even the hosts of an entry are left out.
func (w *withholding) isClosed(e *entry) bool { return w.bare.Excess(e.Key()).Withheld() }

// problem returns the problem of a withheld entry.
func (w *withholding) problem(e *entry) diag.Problem {
	effect := "requests for the hosts fail, because none of their endpoints are used"
	if w.isClosed(e) {
		effect = "requests to the ports fail for all hosts that no other object declares, because none of the hosts are used"
	}
	return w.whole.Excess(e.Key()).Problem(e.Key().Ref(), e.product().String(), effect)
}

// product returns how far the entry multiplies.
func (e *entry) product() schema.Product { return schema.MultipliesTo(e.spec, e.fits) }

// ClosedPorts are ports of services whose hosts are left out. An unknown
// destination there may be one of them, so proxies that would see these services
// refuse it.
type ClosedPorts struct{ in map[string][]int }

// In returns the closed ports for callers in a namespace, in ascending order.
func (c *ClosedPorts) In(namespace string) []int {
	if c == nil {
		return nil
	}
	return slices.Compact(slices.Sorted(slices.Values(slices.Concat(c.in[everyNamespace], c.in[namespace]))))
}

func (w *withholding) closedPorts(settings *Settings) *ClosedPorts {
	if len(w.closed) == 0 {
		return nil
	}
	sets := map[string]map[int]bool{}
	for e := range w.closed {
		seen := viewersOf(settings.ExportTo(e.spec.GetExportTo()), e.Meta.Namespace)
		if seen.all {
			seen.in = map[string]bool{everyNamespace: true}
		}
		for namespace := range seen.in {
			if sets[namespace] == nil {
				sets[namespace] = map[int]bool{}
			}
			for _, port := range e.spec.GetPorts() {
				sets[namespace][int(port.GetNumber())] = true
			}
		}
	}
	out := &ClosedPorts{in: map[string][]int{}}
	for namespace, ports := range sets {
		out.in[namespace] = slices.Sorted(maps.Keys(ports))
	}
	return out
}
