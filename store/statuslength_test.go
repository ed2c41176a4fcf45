package store

import (
	"runtime"
	"strings"
	"testing"

	"github.com/pilot-api/pilot-api/diag"
)

// TestTextOfManyProblemsIsMadeOnce checks that the bytes allocated for a message grow
// with its length.
func TestTextOfManyProblemsIsMadeOnce(t *testing.T) {
	bytesFor := func(n int) uint64 {
		problems := make(diag.List, n)
		for i := range problems {
			problems[i] = diag.Problem{Field: "spec.route", Message: strings.Repeat("x", 100)}
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_ = ToStatus(&Error{Kind: ErrInvalid, Problems: problems})
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	if few, many := bytesFor(100), bytesFor(1600); many > 32*few {
		t.Errorf("%d bytes for 100 problems, %d for 1600", few, many)
	}
}
