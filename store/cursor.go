package store

import (
	"context"
	"fmt"
	"slices"
)

// cursor is one watch over a ChangeLog. It holds a revision, not a queue.
type cursor struct {
	log   *ChangeLog
	scope Scope
	epoch int

	// after is up to where everything was delivered. The log has it, and parked, while
	// the cursor is parked.
	after  int64
	parked bool

	out      chan Batch
	woken    chan struct{} // holds a sign of the log
	progress chan struct{} // holds a wish for an empty batch
	onEnd    []func()

	TerminalError
}

func (c *cursor) Batches() <-chan Batch { return c.out }

func (c *cursor) RequestProgress(context.Context) error {
	select {
	case c.progress <- struct{}{}:
	default: // One wish stands already.
	}
	return nil
}

func (c *cursor) run(ctx context.Context) {
	c.End(c.follow(ctx))
	c.log.leave(c)
	for _, f := range c.onEnd {
		f()
	}
	close(c.out)
}

func (c *cursor) follow(ctx context.Context) error {
	wished := false
	for {
		b, some, err := c.next()
		switch {
		case err != nil:
			return err
		case some:
			if err := c.deliver(ctx, b); err != nil {
				return err
			}
			continue
		case wished:
			if err := c.send(ctx, Batch{Revision: c.after}); err != nil {
				return err
			}
			wished = false
		}
		select {
		case <-c.woken:
		case <-c.progress:
			// The wish counts from now: look at the log once more.
			wished = true
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// next is the first batch beyond the cursor's place. When there is none, the cursor is
// parked at the newest revision.
func (c *cursor) next() (b Batch, some bool, err error) {
	c.log.mu.RLock()
	b, some, err = c.lookLocked()
	c.log.mu.RUnlock()
	if some || err != nil {
		return b, some, err
	}
	c.log.mu.Lock()
	defer c.log.mu.Unlock()
	if b, some, err = c.lookLocked(); !some && err == nil {
		c.log.parked.park(c)
	}
	return b, some, err
}

func (c *cursor) lookLocked() (b Batch, some bool, err error) {
	l := c.log
	switch {
	case c.epoch != l.epoch:
		return Batch{}, false, l.expiredLocked(c.after)
	case c.parked: // Nothing in its scope has come.
		c.after = max(c.after, l.head)
		return Batch{}, false, nil
	case c.after < l.floor:
		return Batch{}, false, &Error{Kind: ErrSlow, Detail: fmt.Sprintf(
			"stopped reading at revision %d, the oldest changes kept follow revision %d", c.after, l.floor)}
	}
	if ahead := l.sinceLocked(c.after); len(ahead) > 0 {
		return c.bundle(ahead), true, nil
	}
	c.after = max(c.after, l.head)
	return Batch{}, false, nil
}

// A cursor that is at least bundleSize batches behind hands over so many as one,
// but not more than about bundleBytes: what many who catch up cost most is not
// the bytes, but the handing over.
const (
	bundleSize  = 64
	bundleBytes = 64 << 10
)

// bundle is the next batch, or one of several, without what is out of scope.
func (c *cursor) bundle(ahead []Batch) Batch {
	first := ahead[0].In(c.scope)
	if len(ahead) < bundleSize {
		return first
	}
	all := Batch{Revision: first.Revision, Events: slices.Clone(first.Events)}
	for size := first.Size(); size < bundleBytes && len(ahead) > 1 && len(all.Events) < bundleSize; {
		ahead = ahead[1:]
		next := ahead[0].In(c.scope)
		size += next.Size()
		all.Events = append(all.Events, next.Events...)
		all.Revision = next.Revision
	}
	return all
}

// deliver sends a batch, and counts it as delivered when there is nothing in it.
func (c *cursor) deliver(ctx context.Context, b Batch) error {
	if len(b.Events) > 0 {
		if err := c.send(ctx, b); err != nil {
			return err
		}
	}
	c.after = b.Revision
	return nil
}

// send hands over a batch, unless ctx has ended: what happens after that is told
// to nobody.
func (c *cursor) send(ctx context.Context, b Batch) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case c.out <- b:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
