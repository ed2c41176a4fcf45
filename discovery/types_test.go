package discovery

import (
	"maps"
	"slices"
	"testing"

	"github.com/pilot-api/pilot-api/explain"
)

// TestTypesAreComplete: each type that a stream has can be shown, inspected, and told in
// metrics.
func TestTypesAreComplete(t *testing.T) {
	var st Stream
	if n := len(st.types()); n != len(resourceTypes) || n != len(explain.Types) {
		t.Errorf("a stream has %d types, there are %d, of which %d are shown", n, len(resourceTypes), len(explain.Types))
	}
	for _, typeURL := range slices.Sorted(maps.Keys(resourceTypes)) {
		if !slices.Contains(explain.Types, nameOf(typeURL)) || ServiceOf(typeURL) == "" {
			t.Errorf("%s is called %q and %q", typeURL, nameOf(typeURL), ServiceOf(typeURL))
		}
	}
}
