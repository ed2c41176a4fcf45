package server

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/store"
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

// TestNoRoomForAQuestion checks that a preview and LostInV1 need room as well.
// Without room the client may retry later.
func TestNoRoomForAQuestion(t *testing.T) {
	err := notCompiled(fmt.Errorf("%w: too many results", discovery.ErrOverBudget))
	if e, is := errors.AsType[*store.Error](err); !is || e.Kind != store.ErrUnavailable || !strings.Contains(e.Error(), "too many results") {
		t.Errorf("got %v", err)
	}
}
