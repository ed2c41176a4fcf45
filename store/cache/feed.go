package cache

import (
	"context"
	"errors"
	"time"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

// listTimeout bounds one try at the first list, or at one after a compaction.
const listTimeout = 30 * time.Second

// follow keeps the view current until ctx ends. A watch that broke goes on
// from the revision of the view; only when the source no longer has what came
// after it, all is listed again.
func (c *Cache) follow(ctx context.Context) error {
	var pace backoff
	for list := true; ; {
		err := c.round(ctx, list, &pace)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		// A revision in the future means that the source lost its newest
		// changes, as when it was restored from a copy.
		expired := errors.Is(err, store.ErrExpired) || errors.Is(err, store.ErrFuture)
		list = expired || !c.HasSynced()
		c.setTrouble(err)
		c.log.Warn("following the store is interrupted", "revision", c.history.Revision(), "list again", list, "error", err)
		if !pace.pause(ctx) {
			return ctx.Err()
		}
	}
}

// round lists if it must, then watches for as long as that works.
func (c *Cache) round(ctx context.Context, list bool, pace *backoff) error {
	if list {
		if err := c.relist(ctx); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w, err := c.source.Watch(ctx, store.Scope{}, c.history.Revision())
	if err != nil {
		return err
	}
	c.setFeed(w)
	defer c.setFeed(nil)
	c.setTrouble(nil)
	// Readers may have been waiting while there was no watch to prompt.
	c.prompt(ctx)
	for b := range w.Batches() {
		pace.reset()
		c.apply(b)
	}
	return w.Err()
}

func (c *Cache) setFeed(w store.Watcher) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.feed = w
}

func (c *Cache) setTrouble(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.trouble = err
}

// prompt asks the running watch, if there is one, how far it has come.
func (c *Cache) prompt(ctx context.Context) {
	c.mu.RLock()
	feed := c.feed
	c.mu.RUnlock()
	if feed == nil {
		return
	}
	if err := feed.RequestProgress(ctx); err != nil {
		c.log.Debug("no progress of the watch", "error", err)
	}
}

// apply brings in one batch.
func (c *Cache) apply(b store.Batch) {
	c.mu.Lock()
	defer c.mu.Unlock()
	events := make([]store.Event, 0, len(b.Events))
	for _, ev := range b.Events {
		// What was before is known here even if the source does not say.
		ev.Previous = c.index.Get(ev.Object.Key())
		c.index.Apply(ev)
		events = append(events, ev)
	}
	c.history.Append(store.Batch{Revision: b.Revision, Events: events})
	if len(events) > 0 {
		c.tellChangeLocked()
	}
}

// relist replaces the view. Watches over the cache end, for changes may be
// hidden between the old view and the new; handlers find the difference.
func (c *Cache) relist(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	list, err := c.source.List(ctx, store.Scope{}, store.ListOptions{})
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	differs := !sameVersions(c.index.List(store.Scope{}), list.Items)
	c.index = store.Index{}
	for _, obj := range list.Items {
		c.index.Put(obj)
	}
	c.history.Reset(list.Revision)
	c.syncOnce.Do(func() {
		close(c.synced)
		differs = true // From "not known" to "nothing there" is a change too.
	})
	if differs {
		c.tellChangeLocked()
	}
	return nil
}

func (c *Cache) tellChangeLocked() {
	close(c.changed)
	c.changed = make(chan struct{})
}

func sameVersions(a, b []*schema.Object) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !sameVersion(a[i], b[i]) {
			return false
		}
	}
	return true
}

// sameVersion compares by uid too: a store that was restored from a copy may
// give a resourceVersion twice.
func sameVersion(a, b *schema.Object) bool {
	return a.Key() == b.Key() && a.Meta.UID == b.Meta.UID && a.Meta.ResourceVersion == b.Meta.ResourceVersion
}
