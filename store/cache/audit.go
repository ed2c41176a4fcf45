package cache

import (
	"context"
	"fmt"
	"time"

	"github.com/pilot-api/pilot-api/store"
)

const (
	// auditInterval is the time between comparisons of the copy with the source.
	auditInterval = 10 * time.Second
	// auditPatience is how long the source may take to count, and then how long the
	// feed may take to reach the revision of the count.
	auditPatience = 10 * time.Second
)

// audit compares the copy with the source's own count at intervals while a feed runs. A
// feed that lost something without knowing it would make every later read wrong. A
// source that cannot count is not audited. An error of audit ends the feed: errMissed,
// or ErrUnavailable if the feed stands still while the source moves on.
func (c *Cache) audit(ctx context.Context) error {
	source, ok := c.source.(store.Counter)
	if !ok {
		<-ctx.Done()
		return ctx.Err()
	}
	tick := time.NewTicker(auditInterval)
	defer tick.Stop()
	for backwards := false; ; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		known := c.changes.Revision()
		count, revision, err := c.count(ctx, source)
		switch {
		case err != nil:
			continue // A source that is unreachable does not show that the copy is wrong.
		case revision >= known:
			backwards = false
		case !backwards:
			backwards = true // A change of another process may not have moved the clock yet.
			continue
		default:
			return fmt.Errorf("%w: the store is at revision %d, after it told of %d", errMissed, revision, known)
		}
		if err := c.compareCount(ctx, count, revision); err != nil {
			return err
		}
	}
}

func (c *Cache) count(ctx context.Context, source store.Counter) (int, int64, error) {
	ctx, cancel := context.WithTimeout(ctx, auditPatience)
	defer cancel()
	return source.Count(ctx)
}

// compareCount compares a count at a revision with the copy at that revision.
func (c *Cache) compareCount(ctx context.Context, count int, revision int64) error {
	reached, cancel := context.WithTimeout(ctx, auditPatience)
	defer cancel()
	if err := c.await(reached, revision); err != nil {
		return &store.Error{Kind: store.ErrUnavailable, Cause: reached.Err(), Detail: fmt.Sprintf(
			"the watch of the store stands at revision %d, the store is at %d", c.changes.Revision(), revision)}
	}
	have, ok := c.countAt(revision)
	if !ok || have == count {
		return nil
	}
	return c.compareList(ctx, revision, fmt.Sprintf("%d objects at revision %d, the copy has %d", count, revision, have))
}

// countAt returns the number of objects that the source should count at a revision. ok
// is false if it is no longer known.
func (c *Cache) countAt(revision int64) (count int, ok bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	later, err := c.changes.Since(revision)
	if err != nil {
		return 0, false
	}
	count = c.index.Len() + c.unreadable.Len()
	for _, b := range later {
		for _, ev := range b.Events {
			switch ev.Type {
			case store.Added:
				count--
			case store.Deleted:
				count++
			}
		}
	}
	return count, true
}

// compareList decides what a different count means: objects may have become unreadable,
// or readable again.
func (c *Cache) compareList(ctx context.Context, revision int64, difference string) error {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	stored, err := c.source.List(ctx, store.Scope{}, store.ListOptions{Exact: revision})
	if err != nil {
		return nil // The next audit tries again.
	}
	have, err := c.viewAt(store.Scope{}, revision)
	if err != nil {
		return nil
	}
	if !sameVersions(stored.Items, have) {
		return fmt.Errorf("%w: it holds %s", errMissed, difference)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.changes.Revision() == revision { // Otherwise the next audit tries again.
		c.unreadable = store.NewUnreadableSet(stored.Unreadable)
		c.tellChangeLocked()
	}
	return nil
}
