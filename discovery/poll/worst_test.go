package poll

import (
	"testing"

	"github.com/pilot-api/pilot-api/discovery/compiled"
	"github.com/pilot-api/pilot-api/discovery/feedback"
	"github.com/pilot-api/pilot-api/discovery/xds"
	"github.com/pilot-api/pilot-api/ir"
)

// TestWorstOfTheTables: a refused route table is not hidden by one that is on its way,
// in whatever order they are looked at.
func TestWorstOfTheTables(t *testing.T) {
	v := &compiled.View{Config: &ir.Config{}}
	h := &Transition{held: []*compiled.View{v}, routed: map[string]*subscription{}}
	for _, table := range []string{"80", "90", "100"} {
		h.routed[table] = &subscription{sent: v}
		h.routed[table].passing.note("has", "told")
	}
	for range passedOver {
		h.routed["80"].passing.note("has", "told")
	}
	for range 100 {
		p := feedback.ProxyStatus{Types: map[string]feedback.TypeStatus{}}
		h.EachType(compiled.NewPolled(v, xds.NewEndpointSet(nil, false)), &compiled.V3Answers{View: v, Secrets: &xds.Set{}}, "", p.Note)
		if types := p.Types; types["routes"].State != feedback.Rejected || types["routes"].Error == "" {
			t.Fatalf("routes are %+v", types["routes"])
		}
	}
}
