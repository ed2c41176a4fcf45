package embedded

import (
	"context"
	"errors"
	"syscall"
	"testing"
)

// TestStartDoesNotWaitForAFailedEtcd checks that the start ends even if a step never
// does, because etcd failed or the context ended.
func TestStartDoesNotWaitForAFailedEtcd(t *testing.T) {
	never := func() error { select {} }
	end := newEnding()
	end.fail(syscall.ENOSPC)
	if err := end.unless(t.Context(), never); !errors.Is(err, ErrFailed) || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("on a full disk: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := newEnding().unless(ctx, never); !errors.Is(err, context.Canceled) {
		t.Errorf("not wanted any more: %v", err)
	}
	if err := newEnding().unless(t.Context(), func() error { return nil }); err != nil {
		t.Errorf("a step that ends: %v", err)
	}
}
