package cache

import (
	"context"
	"sync"

	"github.com/pilot-api/pilot-api/store"
)

// Watch implements store.Reader, from memory. All watchers read one log of recent
// changes. ErrExpired means that the log does not reach back to the revision.
func (c *Cache) Watch(ctx context.Context, scope store.Scope, after int64) (store.Watcher, error) {
	if err := c.WaitForSync(ctx); err != nil {
		return nil, err
	}
	if after == 0 {
		newest, err := c.readIndex.revision(ctx)
		if err != nil {
			return nil, err
		}
		after = newest
	} else if after > c.changes.Revision() {
		if err := c.checkReached(ctx, after); err != nil {
			return nil, err
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	w, err := c.changes.Watch(ctx, scope, after, cancel)
	if err != nil {
		cancel()
		return nil, err
	}
	return &logWatch{Puller: w, cache: c, ctx: ctx}, nil
}

// logWatch is a watch over the change log that answers RequestProgress with the
// source's revision.
type logWatch struct {
	store.Puller
	cache *Cache
	ctx   context.Context // of the watch

	mu        sync.Mutex
	wished    bool // progress was requested
	prompting bool // a goroutine answers requests
}

// RequestProgress implements store.Watcher.
func (w *logWatch) RequestProgress(context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wished = true
	if !w.prompting {
		w.prompting = true
		go w.prompt(w.ctx)
	}
	return nil
}

// take removes the pending request and reports whether there was one. Without one the
// goroutine ends.
func (w *logWatch) take() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.prompting, w.wished = w.wished, false
	return w.prompting
}

// prompt answers each progress request until the watch ends. The present revision is
// that of the source, so the copy must reach it before the request is passed on. prompt
// retries until the copy does.
func (w *logWatch) prompt(ctx context.Context) {
	for w.take() {
		var pace backoff
		for err := w.cache.reach(ctx, 0); err != nil; err = w.cache.reach(ctx, 0) {
			w.cache.log.Debug("progress of a watch not known", "error", err)
			if !pace.pause(ctx) {
				return
			}
		}
		_ = w.Puller.RequestProgress(ctx) // A cursor's never fails.
	}
}
