package cache_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pilot-api/pilot-api/store"
	"github.com/pilot-api/pilot-api/store/cache"
	"github.com/pilot-api/pilot-api/store/memory"
)

// silent is a source that does not return its revision for a while.
type silent struct {
	*memory.Store
	refusals atomic.Int32 // still to come
}

func (s *silent) Revision(ctx context.Context) (int64, error) {
	if s.refusals.Add(-1) >= 0 {
		return 0, errCut
	}
	return s.Store.Revision(ctx)
}

// TestWishForProgressOutlivesTrouble checks that a watch answers a progress request as
// soon as the revision is known, even if it was unknown at first.
func TestWishForProgressOutlivesTrouble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &silent{Store: memory.New()}
		c := start(t, source, cache.Options{})
		w, err := c.Watch(t.Context(), store.Scope{}, 1)
		if err != nil {
			t.Fatal(err)
		}
		source.refusals.Store(10)
		if err := w.RequestProgress(t.Context()); err != nil {
			t.Fatal(err)
		}
		select {
		case b := <-w.Batches():
			if len(b.Events) != 0 || b.Revision != 1 {
				t.Errorf("got %v, watch ended with %v", b, w.Err())
			}
		case <-time.After(time.Hour): // In the bubble.
			t.Error("the wish was forgotten")
		}
	})
}

// TestWishEndsWithItsWatch checks that the source is no longer asked for a watch that
// has ended, even if its context goes on.
func TestWishEndsWithItsWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &silent{Store: memory.New()}
		c := start(t, source, cache.Options{Window: 1})
		w, err := c.Watch(t.Context(), store.Scope{}, 1)
		if err != nil {
			t.Fatal(err)
		}
		const many = 1 << 30
		source.refusals.Store(many)
		if err := w.RequestProgress(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		for _, name := range []string{"a", "b", "c", "d"} { // More than the log keeps, and no reader.
			create(t, t.Context(), source, name)
		}
		synctest.Wait()
		for range w.Batches() {
			continue // It held these already.
		}
		if !errors.Is(w.Err(), store.ErrSlow) {
			t.Fatal(w.Err())
		}
		synctest.Wait()
		asked := source.refusals.Load()
		time.Sleep(time.Hour) // In the bubble.
		if more := asked - source.refusals.Load(); asked == many || more > 0 {
			t.Errorf("asked %d times, and %d times more after the end", many-asked, more)
		}
	})
}
