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

// listTimeout bounds one try at the first list, or at a list after a compaction.
const listTimeout = 30 * time.Second

// errMissed means that the feed has missed changes or the source has lost some. Only a
// full list corrects the copy.
var errMissed = errors.New("the copy is not what the store holds")

// follow keeps the copy current until ctx ends. After a broken watch it resumes from
// the revision of the copy. It lists again only if the source no longer has the changes
// after that revision, or if the copy cannot be trusted.
func (c *Cache) follow(ctx context.Context) error {
	var pace backoff
	for list := true; ; {
		err := c.listAndWatch(ctx, list, &pace)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		// A revision in the future means that the source lost its newest changes, for
		// example because it was restored from a copy.
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

// listAndWatch lists if list is set, then watches until the watch fails.
func (c *Cache) listAndWatch(ctx context.Context, list bool, pace *backoff) error {
	if list {
		if err := c.list(ctx); err != nil {
			return err
		}
		if err := c.replay(ctx, c.syncAt); err != nil {
			return err
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	w, err := c.source.Watch(ctx, store.Scope{}, c.changes.Revision())
	if err != nil {
		_ = group.Wait() // It has no goroutines; Wait releases ctx.
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
	return errWatchEnded
}

var errWatchEnded = &store.Error{Kind: store.ErrUnavailable, Detail: "the watch of the store ended"}

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

// prompt requests progress of the running watch, if there is one.
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

// list reads the copy from the source. The first list begins as far back as the change
// log may reach, and the feed advances it to the present before anyone sees it. A later
// list replaces the copy. Then watches over the cache end, because changes may be
// hidden between the old copy and the new one, and handlers receive the difference.
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
	statuses, err := c.statusesAt(ctx, first.Revision)
	if err != nil {
		return err
	}
	c.replace(first, statuses, at, list.Revision)
	return nil
}

// past returns the state from which the source's changes fit into the change log, and
// the changes of its revision. It returns the present state if the source cannot be
// rewound. The changes of the oldest revision that the source has are unknown; past
// then starts at the next revision.
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

// replayBytes bounds the objects that a replay of the past reads again, in bytes of
// JSON. Objects that were overwritten or deleted since are not counted; the source's
// history has a bound of its own.
const replayBytes = store.ChangeLogBytes / 2

// replayFrom returns the oldest revision after which at most replayBytes of the present
// objects were last changed.
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
