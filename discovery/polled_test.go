package discovery

import (
	"testing"

	"github.com/pilot-api/pilot-api/ir"
)

// TestWorstOfTheTables: a refused route table is not hidden by one that is on its way,
// in whatever order they are looked at.
func TestWorstOfTheTables(t *testing.T) {
	v := &view{config: &ir.Config{}}
	h := &handover{held: []*view{v}, routed: map[string]*subscription{}}
	for _, table := range []string{"80", "90", "100"} {
		h.routed[table] = &subscription{told: v}
		h.routed[table].passing.note("has", "told")
	}
	for range passedOver {
		h.routed["80"].passing.note("has", "told")
	}
	for range 100 {
		if types, _ := h.status(v); types["routes"].State != Rejected || types["routes"].Error == "" {
			t.Fatalf("routes are %+v", types["routes"])
		}
	}
}
