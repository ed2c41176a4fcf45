package rest

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/pilot-api/pilot-api/discovery"
)

// TestNoRoomSaysWhenToAskAgain checks that a proxy whose configuration exceeds the
// budget keeps what it has, and learns when to retry.
func TestNoRoomSaysWhenToAskAgain(t *testing.T) {
	for _, c := range []struct {
		err   error
		after string
	}{
		{fmt.Errorf("%w for x: %w", discovery.ErrNotReady, discovery.ErrOverBudget), "30"},
		{discovery.ErrNotReady, ""},
	} {
		w := httptest.NewRecorder()
		discoveryErrors{slog.New(slog.DiscardHandler)}.write(w, httptest.NewRequest(http.MethodPost, "/v3/discovery:clusters", nil), c.err)
		if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") != c.after {
			t.Errorf("%v: got %d, Retry-After %q, want 503, %q", c.err, w.Code, w.Header().Get("Retry-After"), c.after)
		}
	}
}
