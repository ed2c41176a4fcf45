package discovery

import (
	"maps"
	"slices"
	"testing"

	"github.com/pilot-api/pilot-api/discovery/xds"
	"github.com/pilot-api/pilot-api/explain"
)

// TestTypesAreComplete: each type that a stream has can be shown, inspected, and told in
// metrics.
func TestTypesAreComplete(t *testing.T) {
	var st Stream
	if n := len(st.types()); n != len(xds.ResourceTypes) || n != len(explain.Types) {
		t.Errorf("a stream has %d types, there are %d, of which %d are shown", n, len(xds.ResourceTypes), len(explain.Types))
	}
	for _, typeURL := range slices.Sorted(maps.Keys(xds.ResourceTypes)) {
		if !slices.Contains(explain.Types, xds.NameOf(typeURL)) || xds.ServiceOf(typeURL) == "" {
			t.Errorf("%s is called %q and %q", typeURL, xds.NameOf(typeURL), xds.ServiceOf(typeURL))
		}
	}
}
