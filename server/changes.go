package server

import (
	"cmp"
	"context"
	"time"

	"github.com/pilot-api/pilot-api/store"
)

// changes are a watch of the store as a stream reads it: pulled where the watch allows
// that, so that no goroutine stands between the log of changes and the connection. One
// goroutine uses it.
type changes struct {
	store.Watcher
	pull  store.Puller // nil where it cannot be pulled
	held  *store.Batch // was pushed and not asked for yet
	ended error
}

func changesOf(w store.Watcher) *changes {
	pull, _ := w.(store.Puller)
	return &changes{Watcher: w, pull: pull}
}

// ready has a token when next may have something, of a watch that can be pulled.
func (c *changes) ready() <-chan struct{} {
	if c.pull == nil {
		return nil
	}
	return c.pull.Ready()
}

// pushed brings what hold takes, of a watch that cannot be pulled.
func (c *changes) pushed() <-chan store.Batch {
	if c.pull != nil {
		return nil
	}
	return c.Batches()
}

// hold keeps what came from pushed for next.
func (c *changes) hold(b store.Batch, ok bool) {
	if !ok {
		c.ended = cmp.Or(c.Err(), context.Canceled) // It always says why.
		return
	}
	c.held = &b
}

// next is the next batch, if there is one now, or why there will be none.
func (c *changes) next() (b store.Batch, some bool, err error) {
	if c.pull != nil {
		return c.pull.Pull()
	}
	if c.held == nil && c.ended == nil {
		select {
		case b, ok := <-c.Batches():
			c.hold(b, ok)
		default:
		}
	}
	if c.held == nil {
		return store.Batch{}, false, c.ended
	}
	b, c.held = *c.held, nil
	return b, true, nil
}

// first waits for the next batch.
func (c *changes) first(ctx context.Context, timeout time.Duration) (store.Batch, error) {
	late := time.NewTimer(timeout)
	defer late.Stop()
	for {
		if b, some, err := c.next(); some || err != nil {
			return b, err
		}
		select {
		case <-c.ready():
		case b, ok := <-c.pushed():
			c.hold(b, ok)
		case <-late.C:
			return store.Batch{}, context.DeadlineExceeded
		case <-ctx.Done():
			return store.Batch{}, ctx.Err()
		}
	}
}
