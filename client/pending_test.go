package client

import (
	"errors"
	"testing"

	"github.com/pilot-api/pilot-api/store"
	"github.com/pilot-api/pilot-api/store/storetest"
)

// TestHeldIsBounded checks that a server that never completes a revision does not fill
// the client's memory, neither with many changes nor with large ones.
func TestHeldIsBounded(t *testing.T) {
	const size = 1 << 20
	for _, c := range []struct {
		name   string
		change store.Event
		room   int
	}{
		{"many", store.Event{Type: store.Added, Object: storetest.Rule(t, "default", "a", 1)}, maxHeld},
		{"large", store.Event{Type: store.Added, Object: storetest.Large(t, "default", "a", size)}, maxHeldWeight/(2*size) - 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			var waiting pendingEvents
			for range 2 { // Taking events makes room again.
				for i := range c.room {
					if err := waiting.add(c.change); err != nil {
						t.Fatalf("event %d: %v", i, err)
					}
				}
				if got := waiting.takeAll(); len(got) != c.room {
					t.Fatalf("took %d of %d", len(got), c.room)
				}
			}
			var err error
			for i := 0; err == nil && i < 2*c.room; i++ {
				err = waiting.add(c.change)
			}
			if !errors.Is(err, store.ErrSlow) {
				t.Errorf("beyond the bound: %v", err)
			}
		})
	}
}
