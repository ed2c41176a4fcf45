package wire

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/internal/terminal"
)

// TestWarningsOfHostileWordsAreSent checks that warnings with control characters,
// which a header cannot contain, are sent and do not control a terminal.
func TestWarningsOfHostileWordsAreSent(t *testing.T) {
	w := httptest.NewRecorder()
	Warn(w, diag.List{{Severity: diag.Warning, Message: "found \x1b[2J\x7f\u009b31m\u202e\xff"}})
	sent := w.Header().Get("Warning")
	if !strings.Contains(sent, `u202e`) || strings.ContainsFunc(sent, terminal.Unsafe) {
		t.Errorf("sent %q", sent)
	}
}
