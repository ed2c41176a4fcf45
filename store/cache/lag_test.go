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

// mute is a source whose watches stay open but deliver nothing while it is muted, and
// which does not answer while it is deaf.
type mute struct {
	store.Interface
	muted, deaf atomic.Bool
}

func (m *mute) Revision(ctx context.Context) (int64, error) {
	if m.deaf.Load() {
		<-ctx.Done()
		return 0, ctx.Err()
	}
	return m.Interface.Revision(ctx)
}

func (m *mute) Watch(ctx context.Context, scope store.Scope, after int64) (store.Watcher, error) {
	w, err := m.Interface.Watch(ctx, scope, after)
	if err != nil {
		return nil, err
	}
	out := make(chan store.Batch)
	go func() {
		defer close(out)
		for b := range w.Batches() {
			for m.muted.Load() && ctx.Err() == nil {
				time.Sleep(time.Millisecond)
			}
			select {
			case out <- b:
			case <-ctx.Done():
			}
		}
	}()
	return silenced{w, out}, nil
}

type silenced struct {
	store.Watcher
	out <-chan store.Batch
}

func (s silenced) Batches() <-chan store.Batch { return s.out }

func TestLag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		source := &mute{Interface: memory.New()}
		c := cache.New(source, cache.Options{Log: quiet})
		p := cache.NewProbe(c)
		if lag := p.Lag(); lag.Known {
			t.Errorf("known before the first question: %+v", lag)
		}
		ended := make(chan error, 2)
		go func() { ended <- c.Run(ctx) }()
		go func() { ended <- p.Run(ctx) }()
		create(t, ctx, source, "a")
		wait := func(d time.Duration) cache.Lag {
			time.Sleep(d)
			synctest.Wait()
			return p.Lag()
		}
		if lag := wait(3 * time.Second); !lag.Known || lag.Err != nil || lag.Revisions != 0 || lag.Behind != 0 {
			t.Errorf("a cache that follows: %+v", lag)
		}

		source.muted.Store(true)
		create(t, ctx, source, "b")
		wait(4 * time.Second)
		create(t, ctx, source, "c")
		if lag := wait(6 * time.Second); lag.Err != nil || lag.Revisions != 2 || lag.Behind < 9*time.Second {
			t.Errorf("a feed that tells nothing for 10 s: %+v", lag)
		}
		source.muted.Store(false)
		if lag := wait(2 * time.Second); lag != (cache.Lag{Known: true, Synced: true}) {
			t.Errorf("caught up: %+v", lag)
		}

		source.deaf.Store(true)
		if lag := wait(10 * time.Second); lag.Err == nil {
			t.Errorf("a source that does not answer: %+v", lag)
		}
		source.deaf.Store(false)
		if lag := wait(10 * time.Second); lag != (cache.Lag{Known: true, Synced: true}) {
			t.Errorf("answering again: %+v", lag)
		}
		stop()
		for range 2 {
			if err := <-ended; !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}
	})
}

// TestLagOfMovingCache checks that a copy that is always a little behind, but moves, is
// not reported as lacking a change for long.
func TestLagOfMovingCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		source := &mute{Interface: memory.New()}
		c := cache.New(source, cache.Options{Log: quiet})
		p := cache.NewProbe(c)
		go func() { _ = c.Run(ctx) }()
		go func() { _ = p.Run(ctx) }()
		rule := create(t, ctx, source, "a")
		for i := range 60 {
			source.muted.Store(true)
			update(t, ctx, source, rule.Meta.Name, 2+i)
			time.Sleep(400 * time.Millisecond)
			source.muted.Store(false)
			time.Sleep(100 * time.Millisecond)
			if lag := p.Lag(); lag.Behind > 2*time.Second {
				t.Fatalf("after %d changes: %+v", i, lag)
			}
		}
		stop()
		synctest.Wait()
	})
}
