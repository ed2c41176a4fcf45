package discovery

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestSetDiff holds the walk over two sorted lists against looking every name up.
func TestSetDiff(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		older, newer := drawSet(t), drawSet(t)
		d := newer.since(older)
		var changed, removed []string
		for _, r := range newer.sorted {
			if was := older.named(r.name); was == nil || was.hash != r.hash {
				changed = append(changed, r.name)
			}
		}
		for _, r := range older.sorted {
			if newer.named(r.name) == nil {
				removed = append(removed, r.name)
			}
		}
		var got []string
		for _, r := range d.changed {
			got = append(got, r.name)
		}
		if !slices.Equal(got, changed) || !slices.Equal(d.removed, removed) {
			t.Fatalf("changed %v and removed %v, want %v and %v", got, d.removed, changed, removed)
		}
		if newer.since(older) != d && newer != older {
			t.Fatal("the same difference is worked out again")
		}
		if all := newer.since(nil); len(all.changed) != len(newer.sorted) || len(all.removed) > 0 {
			t.Fatal("since nothing, not everything is new")
		}
		if d := newer.since(newer); len(d.changed)+len(d.removed) > 0 {
			t.Fatal("a set differs from itself")
		}
	})
}
