package cache

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

// listTimeout bounds one try at the first list, or at one after a compaction.
const listTimeout = 30 * time.Second

// errMissed is what the view finds when the feed has missed changes, or when the
// source has lost some: only a list helps.
var errMissed = errors.New("the view is not what the store holds")

// follow keeps the view current until ctx ends. A watch that broke goes on
// from the revision of the view; only when the source no longer has what came
// after it, or when the view cannot be trusted, all is listed again.
func (c *Cache) follow(ctx context.Context) error {
	var pace backoff
	for list := true; ; {
		err := c.listAndWatch(ctx, list, &pace)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		// A revision in the future means that the source lost its newest
		// changes, as when it was restored from a copy.
		lost := errors.Is(err, errMissed) || errors.Is(err, store.ErrExpired) || errors.Is(err, store.ErrFuture)
		list = lost || !c.HasSynced()
		c.setTrouble(err)
		c.report(err, list)
		if !pace.pause(ctx) {
			return ctx.Err()
		}
	}
}

func (c *Cache) report(err error, list bool) {
	level, what := slog.LevelWarn, "following the store is interrupted"
	if errors.Is(err, errMissed) {
		level, what = slog.LevelError, "changes of the store were missed"
	}
	c.log.Log(context.Background(), level, what, "revision", c.changes.Revision(), "list again", list, "error", err)
}

// listAndWatch lists if it must, then watches for as long as that works.
func (c *Cache) listAndWatch(ctx context.Context, list bool, pace *backoff) error {
	if list {
		if err := c.list(ctx); err != nil {
			return err
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	w, err := c.source.Watch(ctx, store.Scope{}, c.changes.Revision())
	if err != nil {
		_ = group.Wait() // Of nobody: it lets go of ctx.
		return err
	}
	c.setFeed(w)
	defer c.setFeed(nil)
	c.setTrouble(nil)
	// Readers may have been waiting while there was no watch to prompt.
	c.prompt(ctx)
	group.Go(func() error { return c.consume(w, pace) })
	group.Go(func() error { return c.audit(ctx) })
	return group.Wait()
}

func (c *Cache) consume(w store.Watcher, pace *backoff) error {
	for b := range w.Batches() {
		pace.reset()
		if err := c.apply(b); err != nil {
			return err
		}
	}
	if err := w.Err(); err != nil {
		return err
	}
	return &store.Error{Kind: store.ErrUnavailable, Detail: "the watch of the store ended"}
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

// list reads the view anew. The first time it begins as far back as the change
// log may reach, and the feed brings it up to now: nobody sees it before. Later
// it is replaced by what is: watches over the cache end, for changes may be
// hidden between the old view and the new, and handlers find the difference.
func (c *Cache) list(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	list, err := c.source.List(ctx, store.Scope{}, store.ListOptions{})
	if err != nil {
		return err
	}
	first, at := list, store.Batch{}
	if c.HasSynced() {
		c.relists.Add(1)
		at, _, err = c.recall(ctx, list.Revision)
	} else {
		first, at, err = c.past(ctx, list)
	}
	if err != nil {
		return err
	}
	c.replace(first, at, list.Revision)
	return nil
}

// past is the state from which on the source's changes fit the change log, or
// the present one if the source cannot be rewound, and what its revision changed.
// Of the oldest that the source has, only the next one knows that.
func (c *Cache) past(ctx context.Context, present *store.List) (*store.List, store.Batch, error) {
	revision := present.Revision
	if source, ok := c.source.(store.Rewinder); ok {
		oldest, err := source.Rewind(ctx, max(revision-int64(c.window), replayFrom(present)))
		if err != nil {
			return nil, store.Batch{}, err
		}
		revision = min(oldest, revision)
	}
	at, known, err := c.recall(ctx, revision)
	if err == nil && !known && revision < present.Revision {
		revision++
		at, _, err = c.recall(ctx, revision)
	}
	if err != nil || revision == present.Revision {
		return present, at, err
	}
	list, err := c.source.List(ctx, store.Scope{}, store.ListOptions{Exact: revision})
	return list, at, err
}

// replayBytes bounds the objects that a replay of the past brings once more, as
// JSON. What was written over or deleted in the meantime comes on top: that is
// the source's history, which has a bound of its own.
const replayBytes = store.ChangeLogBytes / 2

// replayFrom is the oldest revision after which no more than replayBytes of the
// present objects were changed last.
func replayFrom(present *store.List) int64 {
	newestFirst := slices.SortedFunc(slices.Values(present.Items), func(a, b *schema.Object) int {
		return cmp.Compare(b.Revision(), a.Revision())
	})
	size := 0
	for _, obj := range newestFirst {
		if size += len(obj.JSON()); size > replayBytes {
			return obj.Revision()
		}
	}
	return 0
}
