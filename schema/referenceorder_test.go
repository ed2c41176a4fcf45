package schema_test

import (
	"slices"
	"testing"

	"github.com/pilot-api/pilot-api/schema"
)

// TestReferenceOrder: every kind is there with each rank of its objects, the least
// rank first, and an object has one of the ranks of its kind.
func TestReferenceOrder(t *testing.T) {
	seen, last := map[string][]int{}, 0
	for _, of := range schema.ReferenceOrder() {
		if of.Rank < last {
			t.Errorf("%s of rank %d comes after rank %d", of.Kind.Kind, of.Rank, last)
		}
		seen[of.Kind.Kind], last = append(seen[of.Kind.Kind], of.Rank), of.Rank
	}
	for _, kind := range schema.Kinds() {
		if !slices.Equal(seen[kind.Kind], kind.ReferenceRanks()) {
			t.Errorf("%s has the ranks %v, want %v", kind.Kind, seen[kind.Kind], kind.ReferenceRanks())
		}
	}
	const head = `{"apiVersion":"networking.istio.io/v1","kind":"VirtualService","metadata":{"name":"a"},"spec":{`
	const routes = `"http":[{"route":[{"destination":{"host":"b.example"}}]}]}}`
	ranks := map[string]int{}
	for name, text := range map[string]string{"delegate": head + routes, "root": head + `"hosts":["a.example"],` + routes} {
		obj, problems := schema.Decode([]byte(text), schema.Options{Namespace: "default"})
		if obj == nil {
			t.Fatal(problems)
		}
		ranks[name] = schema.ReferenceRank(obj)
	}
	if !slices.Equal([]int{ranks["delegate"], ranks["root"]}, seen["VirtualService"]) {
		t.Errorf("VirtualServices have the ranks %v, want %v", ranks, seen["VirtualService"])
	}
}
