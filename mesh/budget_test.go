package mesh_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

func TestBudgetOr(t *testing.T) {
	for _, tc := range []struct{ stated, want mesh.Budget }{
		{mesh.Budget{}, mesh.Budget{Object: 100, Mesh: 1000}},
		{mesh.Budget{Object: 5000}, mesh.Budget{Object: 5000, Mesh: 1000}},
		{mesh.Budget{Mesh: 50}, mesh.Budget{Object: 50, Mesh: 50}},
		{mesh.Budget{Object: 5, Mesh: 7}, mesh.Budget{Object: 5, Mesh: 7}},
	} {
		if got := tc.stated.Or(mesh.Budget{Object: 100, Mesh: 1000}); got != tc.want {
			t.Errorf("%+v is %+v, want %+v", tc.stated, got, tc.want)
		}
	}
}

// TestWithheld: first what exceeds the budget of an object, then what costs most of
// the rest; of equal costs the younger object, then the later name.
func TestWithheld(t *testing.T) {
	costIn := func(namespace, name string, age, parts int) mesh.Cost {
		return mesh.Cost{Object: schema.Key{Kind: "ServiceEntry", Namespace: namespace, Name: name}, Created: time.Unix(int64(1000-age), 0), Parts: parts}
	}
	cost := func(name string, age, parts int) mesh.Cost { return costIn("default", name, age, parts) }
	b := mesh.Budget{Object: 10, Mesh: 20}
	for _, tc := range []struct {
		name  string
		costs []mesh.Cost
		want  string
	}{
		{"all fit", []mesh.Cost{cost("a", 0, 10), cost("b", 0, 10), cost("none", 0, 0)}, "[]"},
		{"one is too large, and leaves room for the others", []mesh.Cost{cost("a", 0, 11), cost("b", 0, 10), cost("c", 0, 10)}, "[a]"},
		{"the highest goes", []mesh.Cost{cost("a", 9, 9), cost("b", 0, 8), cost("c", 0, 7)}, "[a]"},
		{"until the rest fits", []mesh.Cost{cost("a", 0, 9), cost("b", 0, 8), cost("c", 0, 7), cost("d", 0, 6), cost("e", 0, 6)}, "[a b]"},
		{"the younger of equals", []mesh.Cost{cost("a", 1, 10), cost("b", 3, 10), cost("c", 2, 10)}, "[a]"},
		{"many small ones do not push out the largest of another namespace", []mesh.Cost{
			costIn("other", "large", 0, 9), cost("a", 0, 4), cost("b", 0, 4), cost("c", 0, 4), cost("d", 0, 4)}, "[c d]"},
		{"of the namespace with the most, then of whichever has it", []mesh.Cost{
			costIn("other", "x", 0, 9), costIn("other", "y", 0, 3), cost("a", 0, 6), cost("b", 0, 5), cost("c", 0, 4)}, "[a x]"},
		{"of equal namespaces the later one", []mesh.Cost{costIn("other", "x", 0, 8), costIn("other", "y", 0, 3), cost("a", 0, 8), cost("b", 0, 3)}, "[x]"},
		{"the later name of equals", []mesh.Cost{cost("a", 1, 10), cost("c", 1, 10), cost("b", 1, 10)}, "[c]"},
	} {
		for range 3 {
			slices.Reverse(tc.costs)
			var got []string
			for key, excess := range b.Withheld(tc.costs) {
				got = append(got, key.Name)
				if !excess.Withheld() || excess.Mesh != (excess.Parts <= b.Object) {
					t.Errorf("%s: %s: %+v", tc.name, key, excess)
				}
			}
			slices.Sort(got)
			if fmt.Sprint(got) != tc.want {
				t.Errorf("%s: %v are withheld, want %s", tc.name, got, tc.want)
			}
		}
	}
}

// TestLedgerIsAsFromScratch: by whatever changes a ledger came about, it withholds
// what a new one would, what is left fits, and it names what has changed.
func TestLedgerIsAsFromScratch(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		budget := mesh.Budget{Object: rapid.IntRange(1, 12).Draw(rt, "object"), Mesh: rapid.IntRange(1, 40).Draw(rt, "mesh")}
		ledger := mesh.Ledger{Budget: budget}
		costs, before := map[schema.Key]mesh.Cost{}, map[schema.Key]mesh.Excess{}
		for range rapid.IntRange(1, 8).Draw(rt, "settled") {
			for range rapid.IntRange(0, 6).Draw(rt, "set") {
				c := mesh.Cost{
					Object:  schema.Key{Kind: "ServiceEntry", Namespace: rapid.SampledFrom([]string{"one", "two", "three"}).Draw(rt, "namespace"), Name: rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f", "g"}).Draw(rt, "name")},
					Created: time.Unix(int64(rapid.IntRange(0, 2).Draw(rt, "created")), 0),
					Parts:   rapid.IntRange(0, 15).Draw(rt, "parts"),
				}
				ledger.Set(c)
				costs[c.Object] = c
			}
			want := budget.Withheld(slices.Collect(maps.Values(costs)))
			changed := map[schema.Key]bool{}
			for _, key := range ledger.Settle() {
				changed[key] = true
			}
			sum := 0
			for key, c := range costs {
				if got := ledger.Excess(key); got != want[key] {
					rt.Fatalf("%s has the excess %+v, want %+v", key, got, want[key])
				}
				if changed[key] != (before[key] != want[key]) {
					rt.Fatalf("%s is said to have changed: %v", key, changed[key])
				}
				if !want[key].Withheld() {
					sum += c.Parts
				}
			}
			if sum > budget.Mesh {
				rt.Fatalf("%d parts are left, with a budget of %+v", sum, budget)
			}
			before = want
		}
	})
}
