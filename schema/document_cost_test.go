package schema

import (
	"strings"
	"testing"

	"github.com/pilot-api/pilot-api/diag"
)

// TestListIsReadAsFarAsTold: a List with many bad items costs little beyond its text,
// and no more problems are told of it than of one object.
func TestListIsReadAsFarAsTold(t *testing.T) {
	const few, times = 2000, 4
	read := func(n int) uint64 {
		text := []byte("apiVersion: v1\nkind: List\nitems:\n" + strings.Repeat("- {a: 1}\n", n))
		var problems diag.List
		got := allocated(func() { _, problems, _ = Document{Text: text, Line: 1}.Objects(t.Context(), "default") })
		if len(problems) > 2*mostProblems || !strings.Contains(problems[len(problems)-1].Message, "items were not read") {
			t.Errorf("%d items: %d problems are told", n, len(problems))
		}
		return got
	}
	read(few)
	if less, more := read(few), read(few*times); more > 2*times*less {
		t.Errorf("%d bytes are allocated for %d items, %d for %d", less, few, more, few*times)
	}
}
