package cache_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pilot-api/pilot-api/store"
	"github.com/pilot-api/pilot-api/store/cache"
	"github.com/pilot-api/pilot-api/store/memory"
)

// stuck is a source whose lists of the past never return.
type stuck struct {
	*memory.Store
	asked chan struct{}
}

func (s *stuck) List(ctx context.Context, scope store.Scope, opts store.ListOptions) (*store.List, error) {
	if opts.Exact == 0 {
		return s.Store.List(ctx, scope, opts)
	}
	s.asked <- struct{}{}
	<-ctx.Done()
	return nil, ctx.Err()
}

// Rewind prevents rewinding, so that only the source has a past.
func (s *stuck) Rewind(ctx context.Context, _ int64) (int64, error) { return s.Revision(ctx) }

// TestListsOfThePastAreBounded checks that only a few lists are read from the source at
// a time, however many are requested, and that a reader that waits too long gets an
// error.
func TestListsOfThePastAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &stuck{Store: memory.New(), asked: make(chan struct{}, 100)}
		first := create(t, t.Context(), source, "a")
		create(t, t.Context(), source, "b")
		c := start(t, source, cache.Options{})
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // In the bubble.
		defer cancel()
		told := make(chan error, 10)
		for range cap(told) {
			go func() {
				_, err := c.List(ctx, store.Scope{}, store.ListOptions{Exact: first.Revision()})
				told <- err
			}()
		}
		synctest.Wait()
		if n := len(source.asked); n == 0 || n > 2 {
			t.Errorf("%d lists are read at a time", n)
		}
		unavailable := 0
		for range cap(told) {
			if errors.Is(<-told, store.ErrUnavailable) {
				unavailable++
			}
		}
		if unavailable < cap(told)-2 {
			t.Errorf("%d were told that the store is not available", unavailable)
		}
	})
}
