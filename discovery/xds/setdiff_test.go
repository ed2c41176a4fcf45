package xds

import "maps"

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestSetDiff holds the walk over two sorted lists against looking every name up.
func TestSetDiff(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		older, newer := drawSet(t), drawSet(t)
		d := newer.Since(older)
		var changed, removed []string
		for _, r := range newer.Sorted {
			if was := older.Named(r.Name); was == nil || was.Hash != r.Hash {
				changed = append(changed, r.Name)
			}
		}
		for _, r := range older.Sorted {
			if newer.Named(r.Name) == nil {
				removed = append(removed, r.Name)
			}
		}
		var got []string
		for _, r := range d.Changed {
			got = append(got, r.Name)
		}
		if !slices.Equal(got, changed) || !slices.Equal(d.Removed, removed) {
			t.Fatalf("changed %v and removed %v, want %v and %v", got, d.Removed, changed, removed)
		}
		if newer.Since(older) != d && newer != older {
			t.Fatal("the same difference is worked out again")
		}
		if all := newer.Since(nil); len(all.Changed) != len(newer.Sorted) || len(all.Removed) > 0 {
			t.Fatal("since nothing, not everything is new")
		}
		if d := newer.Since(newer); len(d.Changed)+len(d.Removed) > 0 {
			t.Fatal("a set differs from itself")
		}
	})
}

func drawSet(t *rapid.T) *Set {
	contents := rapid.MapOfN(rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f"}), rapid.Byte(), 0, 6).Draw(t, "set")
	var all []*Resource
	for _, name := range slices.Sorted(maps.Keys(contents)) {
		content := contents[name]
		all = append(all, &Resource{TypeURL: EndpointType, Name: name, Hash: Digest{content}, Shell: &Fragment{Binary: []byte{content}}})
	}
	return NewSet(EndpointType, all)
}
