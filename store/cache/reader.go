package cache

import (
	"context"
	"fmt"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

var (
	_ store.Reader    = (*Cache)(nil)
	_ store.Repeater  = (*Cache)(nil)
	_ store.Inspector = (*Cache)(nil)
	_ store.Follower  = (*Cache)(nil)

	_ store.StatusReader = (*Cache)(nil)
)

// Revision implements store.Reader. It returns the source's revision.
func (c *Cache) Revision(ctx context.Context) (int64, error) { return c.readIndex.revision(ctx) }

// Outage implements store.Follower. A source in this process is never out of reach.
func (c *Cache) Outage() (store.Outage, bool) {
	if clock, ok := c.source.(store.Timekeeper); ok {
		if _, here := clock.Now(context.Background()); here {
			return store.Outage{}, false
		}
	}
	since, down := c.readIndex.outage()
	return store.Outage{Since: since, Revision: c.changes.Revision()}, down
}

// CatchUp waits until the copy has everything that was stored before the call, and returns
// the revision of the copy then.
func (c *Cache) CatchUp(ctx context.Context) (int64, error) {
	err := c.reach(ctx, 0)
	return c.changes.Revision(), err
}

// Get implements store.Reader, from memory.
func (c *Cache) Get(ctx context.Context, key schema.Key, opts store.ReadOptions) (*schema.Object, error) {
	if err := c.reach(ctx, opts.AtLeast); err != nil {
		return nil, err
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	if obj := c.index.Get(key); obj != nil {
		return obj, nil
	}
	if u, known := c.unreadable.Of(key); known {
		return nil, u.Err()
	}
	return nil, &store.Error{Kind: store.ErrNotFound, Key: key}
}

// Unreadable implements store.Inspector.
func (c *Cache) Unreadable(scope store.Scope) []store.Unreadable {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.unreadable.In(scope)
}

// Repeat implements store.Repeater.
func (c *Cache) Repeat(scope store.Scope, revision int64) ([]store.Event, error) {
	return c.changes.Repeat(scope, revision)
}

// Peek returns an object of the copy immediately, however old. It returns nil if there
// is none, and while the source cannot be followed.
func (c *Cache) Peek(key schema.Key) *schema.Object {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.feed == nil {
		return nil
	}
	return c.index.Get(key).WithoutStatus()
}

// List implements store.Reader, from memory. It asks the source only for an exact
// revision that the cache no longer holds.
func (c *Cache) List(ctx context.Context, scope store.Scope, opts store.ListOptions) (*store.List, error) {
	if opts.Exact != 0 {
		return c.listExact(ctx, scope, opts)
	}
	if err := c.reach(ctx, opts.AtLeast); err != nil {
		return nil, err
	}
	all, revision := c.objects(scope)
	items, remaining := opts.Page(all)
	return &store.List{Revision: revision, Items: items, Remaining: remaining, Unreadable: c.Unreadable(scope)}, nil
}

func (c *Cache) listExact(ctx context.Context, scope store.Scope, opts store.ListOptions) (*store.List, error) {
	if err := c.reachPast(ctx, opts.Exact); err != nil {
		return nil, err
	}
	if all, err := c.viewAt(scope, opts.Exact); err == nil {
		items, remaining := opts.Page(all)
		return &store.List{Revision: opts.Exact, Items: items, Remaining: remaining, Unreadable: c.Unreadable(scope)}, nil
	}
	return c.listFromSource(ctx, scope, opts)
}

// maxPastLists is how many lists of the past are read from the source at a time,
// because each loads all of its objects into memory again.
const maxPastLists = 2

func (c *Cache) listFromSource(ctx context.Context, scope store.Scope, opts store.ListOptions) (*store.List, error) {
	select {
	case c.pastLists <- struct{}{}:
		defer func() { <-c.pastLists }()
		list, err := c.source.List(ctx, scope, opts)
		if err != nil {
			return nil, err
		}
		statuses, err := c.statusesAt(ctx, list.Revision)
		if err != nil {
			return nil, err
		}
		statuses.show(list.Items)
		return list, nil
	case <-ctx.Done():
		return nil, &store.Error{Kind: store.ErrUnavailable, Detail: "too many lists of the past are being read", Cause: ctx.Err()}
	}
}

func (c *Cache) viewAt(scope store.Scope, revision int64) ([]*schema.Object, error) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	later, err := c.changes.Since(revision)
	if err != nil {
		return nil, err
	}
	return c.index.ListBefore(scope, later), nil
}

// reach waits until the copy is as fresh as atLeast requires; see store.ReadOptions.
func (c *Cache) reach(ctx context.Context, atLeast int64) error {
	if err := c.WaitForSync(ctx); err != nil || atLeast == store.Any {
		return err
	}
	if atLeast > 0 {
		return c.await(ctx, atLeast)
	}
	newest, err := c.readIndex.revision(ctx)
	if err != nil {
		return err
	}
	if err := c.await(ctx, newest); err != nil {
		return &store.Error{Kind: store.ErrUnavailable, Cause: ctx.Err(), Detail: fmt.Sprintf(
			"the local copy has not reached revision %d of the store in time", newest)}
	}
	return nil
}

// reachPast waits for a revision that the source must have reached already; otherwise
// the error is ErrFuture.
func (c *Cache) reachPast(ctx context.Context, revision int64) error {
	if err := c.WaitForSync(ctx); err != nil || c.changes.Revision() >= revision {
		return err
	}
	if err := c.checkReached(ctx, revision); err != nil {
		return err
	}
	return c.await(ctx, revision)
}

func (c *Cache) checkReached(ctx context.Context, revision int64) error {
	newest, err := c.readIndex.revision(ctx)
	if err == nil && revision > newest {
		err = store.NotReached(revision, newest)
	}
	return err
}

func (c *Cache) await(ctx context.Context, revision int64) error {
	if c.changes.Revision() >= revision {
		return nil
	}
	c.prompt(ctx)
	return c.changes.Wait(ctx, revision)
}
