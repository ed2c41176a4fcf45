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
	return &windowWatch{Watcher: w, cache: c, ctx: ctx}, nil
}

type windowWatch struct {
	store.Watcher
	cache *Cache
	ctx   context.Context // of the watch
}

// RequestProgress implements store.Watcher. The present revision is that of the
// source, so the view must come up to it before the wish is passed on.
func (w *windowWatch) RequestProgress(context.Context) error {
	go func() {
		if err := w.cache.reach(w.ctx, 0); err != nil {
			w.cache.log.Debug("no progress of a watch", "error", err)
			return
		}
		_ = w.Watcher.RequestProgress(w.ctx) // A cursor's never fails.
	}()
	return nil
}
