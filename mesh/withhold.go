package mesh

import "github.com/pilot-api/pilot-api/schema"

// withhold decides which entries exceed the budget, before anything of them is
// built. Those that begin or cease to are touched. What an entry costs depends on no
// other decision, so that the order of changes has no effect.
func (r *registry) withhold(t *touched) {
	for e := range t.entries {
		r.costs.Set(CostOf(e.Object, e.product().Parts()))
	}
	for _, key := range r.costs.Settle() {
		if e := r.entries[key]; e != nil && e.spec != nil {
			t.touch(e)
		}
	}
}

// product is how many instances there are.
func (e *entry) product() schema.Product {
	return schema.Product{
		{Length: len(e.spec.GetHosts()), Of: "hosts"},
		{Length: len(e.spec.GetPorts()), Of: "ports"},
		{Length: len(e.spec.GetEndpoints()) + e.fits, Of: "endpoints"},
	}
}
