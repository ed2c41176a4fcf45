package watch

import (
	"cmp"
	"context"
	"time"

	"github.com/pilot-api/pilot-api/store"
)

// changes reads a watch of the store for a stream. It pulls where the watch allows
// that, so that no goroutine stands between the log of changes and the connection.
// It is for use by one goroutine.
type changes struct {
	store.Watcher
	pull  store.Puller // nil if the watch cannot be pulled
	held  *store.Batch // pushed but not yet returned by next
	ended error
}

func changesOf(w store.Watcher) *changes {
	pull, _ := w.(store.Puller)
	return &changes{Watcher: w, pull: pull}
}

// ready receives when next may have something. It is nil if the watch cannot be
// pulled.
func (c *changes) ready() <-chan struct{} {
	if c.pull == nil {
		return nil
	}
	return c.pull.Ready()
}

// pushed returns the batches to pass to hold. It is nil if the watch can be pulled.
func (c *changes) pushed() <-chan store.Batch {
	if c.pull != nil {
		return nil
	}
	return c.Batches()
}

// hold keeps a value received from pushed for next.
func (c *changes) hold(b store.Batch, ok bool) {
	if !ok {
		c.ended = cmp.Or(c.Err(), context.Canceled) // Err always gives a reason.
		return
	}
	c.held = &b
}

// next returns the next batch if there is one now, or the error that ended the
// watch. It does not block.
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

// first waits for the next batch, at most for timeout.
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
