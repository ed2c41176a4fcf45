package etcd

import (
	"context"
	"errors"
	"syscall"
	"testing"
)

// TestStartDoesNotWaitForAFailedEtcd: a step that never ends, because etcd failed
// under it or nobody wants it any more, ends the start all the same.
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
