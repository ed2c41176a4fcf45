package poll

import (
	"fmt"
	"testing"

	"github.com/pilot-api/pilot-api/discovery/compiled"
	"github.com/pilot-api/pilot-api/ir"
)

// TestRecordedTablesAreBounded checks that a proxy which polls for many tables that do not
// exist takes little memory.
func TestRecordedTablesAreBounded(t *testing.T) {
	h := &Transition{held: []*compiled.View{{Config: &ir.Config{}}}}
	for i := range 2 * maxGone {
		h.note(fmt.Sprintf("8443|tls=%d", i), subscription{}, "told")
		h.note(fmt.Sprintf("%d", i), subscription{}, "told")
	}
	if len(h.routed) != maxGone {
		t.Errorf("%d tables are recorded, want %d", len(h.routed), maxGone)
	}
}
