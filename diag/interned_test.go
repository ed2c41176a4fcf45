package diag_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/pilot-api/pilot-api/diag"
)

// TestInternIsBounded: the part of a configuration that loses something in each of its
// thousands of routes keeps a bounded number of problems, each distinct one once.
func TestInternIsBounded(t *testing.T) {
	ref := diag.Ref{Kind: "VirtualService", Namespace: "a", Name: "b"}
	var all diag.List
	for i := range 5000 {
		all = append(all, diag.Problem{Object: ref, Message: fmt.Sprintf("route %d", i)}, diag.Problem{Object: ref, Message: "the same"})
	}
	first, second := diag.Intern(all, diag.LostInV1), diag.Intern(slices.Clone(all), diag.LostInV1)
	if len(first) > diag.MaxPerObject+1 {
		t.Errorf("%d problems are kept, want at most %d and one that counts the rest", len(first), diag.MaxPerObject)
	}
	if !slices.Equal(first, second) {
		t.Error("equal problems are kept twice")
	}
	for _, p := range first.List() {
		if p.Code != diag.LostInV1 {
			t.Fatalf("%v has the code %q, want %s", p, p.Code, diag.LostInV1)
		}
	}
	var gathered diag.Collector
	diag.Intern(all[:2], "").AddTo(&gathered, diag.LostInV3)
	if got := gathered.List(); len(got) != 2 || got[0].Code != diag.LostInV3 {
		t.Errorf("gathered: %v", got)
	}
}
