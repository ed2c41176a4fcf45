package cache

import (
	"context"
	"errors"
	"sync"

	"github.com/pilot-api/pilot-api/store"
)

// catchUp is a watch from before the window, as after a restart of this
// process: it reads from the source what the cache never saw or no longer
// holds, and goes over to the window as soon as it has come up to it.
func (c *Cache) catchUp(ctx context.Context, scope store.Scope, after int64) (store.Watcher, error) {
	fromSource, cancel := context.WithCancel(ctx)
	old, err := c.source.Watch(fromSource, scope, after)
	if err != nil {
		cancel()
		return nil, err
	}
	r := &relay{
		cache: c, scope: scope, seen: after,
		current: old, leave: cancel, out: make(chan store.Batch),
	}
	go r.run(ctx)
	return r, nil
}

// relay is a watch that changes its source on the way.
type relay struct {
	cache *Cache
	scope store.Scope
	seen  int64 // everything up to here was delivered
	leave context.CancelFunc
	out   chan store.Batch

	mu      sync.Mutex
	current store.Watcher

	store.Ending
}

func (r *relay) Batches() <-chan store.Batch { return r.out }

func (r *relay) RequestProgress(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.current.RequestProgress(ctx)
}

func (r *relay) run(ctx context.Context) {
	err := r.fromSource(ctx)
	r.leave()
	if err == nil {
		err = r.fromWindow(ctx)
	}
	r.End(err)
	close(r.out)
}

// fromSource delivers until the window reaches back to what was delivered.
func (r *relay) fromSource(ctx context.Context) error {
	if err := r.RequestProgress(ctx); err != nil {
		return err
	}
	for b := range r.current.Batches() {
		if err := r.send(ctx, b); err != nil {
			return err
		}
		if _, err := r.cache.history.Since(r.seen); err == nil {
			return nil
		}
	}
	return r.current.Err()
}

func (r *relay) fromWindow(ctx context.Context) error {
	w, err := r.cache.window(ctx, r.scope, r.seen)
	if errors.Is(err, store.ErrExpired) {
		// The window moved on in this very moment.
		return &store.Error{Kind: store.ErrSlow, Cause: err}
	}
	if err != nil {
		return err
	}
	r.mu.Lock()
	r.current = w
	r.mu.Unlock()
	if err := w.RequestProgress(ctx); err != nil {
		return err
	}
	for b := range w.Batches() {
		if err := r.send(ctx, b); err != nil {
			return err
		}
	}
	return w.Err()
}

func (r *relay) send(ctx context.Context, b store.Batch) error {
	select {
	case r.out <- b:
		r.seen = b.Revision
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
