package store_test

import (
	"fmt"
	"testing"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

// TestStatusNamesKinds as Kubernetes does: with the group, which the core kinds lack.
func TestStatusNamesKinds(t *testing.T) {
	for _, kind := range schema.Kinds() {
		what := kind.Plural
		if kind.Group != "" {
			what += "." + kind.Group
		}
		err := &store.Error{Kind: store.ErrNotFound, Key: schema.KeyOf(kind, "shop", "nope")}
		if got, want := store.ToStatus(err).Message, fmt.Sprintf("%s %q not found", what, "nope"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
