package cli

import (
	"bytes"
	"context"
	"strings"
	"testing"
)

// TestTheEndIsNoLoss: whoever set a time, or interrupts, is not told that a
// connection is lost.
func TestTheEndIsNoLoss(t *testing.T) {
	var errs bytes.Buffer
	link := NewLink(&Session{Program: &Program{Stderr: &errs}}, nil)
	ctx, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	link.Gone(ctx, ctx.Err())
	if errs.Len() > 0 {
		t.Errorf("told %q", &errs)
	}
	link.Gone(t.Context(), context.DeadlineExceeded)
	if !strings.Contains(errs.String(), "lost, retrying") {
		t.Errorf("told %q of a request that took too long", &errs)
	}
}
