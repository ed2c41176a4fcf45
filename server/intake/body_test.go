package intake

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

// TestObjectsOfABodyAreBounded checks that a body with many documents reports as
// many errors as one text, has no more objects than one transaction, and is not
// decoded after its client has left.
func TestObjectsOfABodyAreBounded(t *testing.T) {
	const item = "{apiVersion: config.istio.io/v1alpha2, kind: RouteRule, metadata: {name: x%d}, spec: {destination: {name: a}}}\n"
	for name, text := range map[string]string{
		"a List":         "kind: List\nitems:\n" + strings.Repeat("- {a: 1}\n", 5000),
		"a flow List":    "kind: List\nitems: [" + strings.Repeat("{a: 1}, ", 5000) + "]\n",
		"many documents": strings.Repeat("---\na: 1\n", 5000),
		"many Lists":     strings.Repeat("---\nkind: List\nitems: [{a: 1}]\n", 5000),
	} {
		_, err := objectsIn(t.Context(), []byte(text), schema.DefaultNamespace)
		var invalid *store.Error
		if !errors.As(err, &invalid) || len(invalid.Problems) < MaxErrors || len(invalid.Problems) > MaxErrors+10 {
			t.Errorf("%s: %.200v", name, err)
		}
	}
	var many strings.Builder
	many.WriteString("kind: List\nitems:\n")
	for i := range store.MaxTxnOps + 1 {
		fmt.Fprintf(&many, "- "+item, i)
	}
	if _, err := objectsIn(t.Context(), []byte(many.String()), schema.DefaultNamespace); err == nil || !strings.Contains(err.Error(), fmt.Sprint(store.MaxTxnOps)) {
		t.Errorf("more objects than are allowed: %v", err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := objectsIn(gone, fmt.Appendf(nil, item, 1), schema.DefaultNamespace); !errors.Is(err, context.Canceled) {
		t.Errorf("for nobody: %v", err)
	}
}
