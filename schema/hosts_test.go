package schema

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestHostsAgainstTheirMeaning compares the sorted ways with the plain ones.
func TestHostsAgainstTheirMeaning(t *testing.T) {
	host := rapid.StringMatching(`\*?[a.-]{0,5}[ab]`)
	rapid.Check(t, func(t *rapid.T) {
		hosts := rapid.SliceOfN(host, 0, 12).Draw(t, "hosts")
		set := newHostSet(hosts)
		name := host.Draw(t, "name")
		within := slices.ContainsFunc(hosts, func(h string) bool { return hostWithin(name, h) })
		if set.covers(name) != within {
			t.Fatalf("%q within %q: got %v", name, hosts, !within)
		}
		for i, first := range firstOverlaps(hosts) {
			want := slices.IndexFunc(hosts, func(h string) bool { return hostWithin(h, hosts[i]) || hostWithin(hosts[i], h) })
			if first != want {
				t.Fatalf("%q: %d overlaps first with %d, want %d", hosts, i, first, want)
			}
		}
	})
}

func hostWithin(inner, outer string) bool {
	if inner == outer {
		return true
	}
	text, _ := backwards(inner)
	ending, wildcard := backwards(outer)
	return wildcard && len(text) >= len(ending) && text[:len(ending)] == ending
}
