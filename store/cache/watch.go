package cache

import (
	"context"
	"errors"

	"github.com/pilot-api/pilot-api/store"
)

// Watch implements store.Reader, from memory: all watchers read the one window
// of recent changes. A watch from before the window is the source's until it
// has come up to it.
func (c *Cache) Watch(ctx context.Context, scope store.Scope, after int64) (store.Watcher, error) {
	if err := c.WaitForSync(ctx); err != nil {
		return nil, err
	}
	if after == 0 {
		newest, err := c.freshness.revision(ctx)
		if err != nil {
			return nil, err
		}
		after = newest
	} else if after > c.history.Revision() {
		if err := c.checkReached(ctx, after); err != nil {
			return nil, err
		}
	}
	w, err := c.window(ctx, scope, after)
	if errors.Is(err, store.ErrExpired) {
		return c.catchUp(ctx, scope, after)
	}
	return w, err
}

// window is a watch over the recent changes in memory.
func (c *Cache) window(ctx context.Context, scope store.Scope, after int64) (store.Watcher, error) {
	w, err := c.history.Watch(ctx, scope, after)
	if err != nil {
		return nil, err
	}
	ww := &windowWatch{Watcher: w, cache: c, wishes: make(chan struct{}, 1)}
	go ww.prompt(ctx)
	return ww, nil
}

type windowWatch struct {
	store.Watcher
	cache  *Cache
	wishes chan struct{} // holds a wish for progress
}

// RequestProgress implements store.Watcher.
func (w *windowWatch) RequestProgress(context.Context) error {
	select {
	case w.wishes <- struct{}{}:
	default: // One wish stands already.
	}
	return nil
}

// prompt sees to it that each wish is answered. The present revision is that of
// the source, so the view must come up to it before the wish is passed on; as
// long as that cannot be, it is tried again.
func (w *windowWatch) prompt(ctx context.Context) {
	for {
		select {
		case <-w.wishes:
		case <-ctx.Done():
			return
		}
		var pace backoff
		for err := w.cache.reach(ctx, 0); err != nil; err = w.cache.reach(ctx, 0) {
			w.cache.log.Debug("progress of a watch not known", "error", err)
			if !pace.pause(ctx) {
				return
			}
		}
		_ = w.Watcher.RequestProgress(ctx) // A cursor's never fails.
	}
}
