package admission

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestRoomIsGivenBackInParts checks that a waiting caller enters when others have
// given back enough, and that nobody gives back more than they took.
func TestRoomIsGivenBackInParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRoom(10)
		all, err := r.Enter(t.Context(), 50)
		if err != nil {
			t.Fatal(err)
		}
		full := func(bytes int64) {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if _, err := r.Enter(ctx, bytes); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%d bytes more were answered %v", bytes, err)
			}
		}
		full(1)
		all.Keep(6)
		all.Keep(8) // It does not grow.
		some, err := r.Enter(t.Context(), 4)
		if err != nil {
			t.Fatal(err)
		}
		full(1)
		all.Leave()
		all.Leave()
		some.Leave()
		if _, err := r.Enter(t.Context(), 10); err != nil {
			t.Error(err)
		}
		full(1)
	})
}
