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
	after int64 // everything up to here was delivered
	epoch int

	out      chan Batch
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
	for _, f := range c.onEnd {
		f()
	}
	close(c.out)
}

func (c *cursor) follow(ctx context.Context) error {
	wished := false
	for {
		b, moved, err := c.next()
		switch {
		case err != nil:
			return err
		case moved == nil:
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
		case <-moved:
		case <-c.progress:
			// The wish counts from now: look at the log once more.
			wished = true
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// next is the first batch beyond the cursor's place. When there is none, the
// place moves up to the newest revision, and the channel tells of more.
func (c *cursor) next() (Batch, <-chan struct{}, error) {
	l := c.log
	l.mu.RLock()
	defer l.mu.RUnlock()
	switch {
	case c.epoch != l.epoch:
		return Batch{}, nil, l.expiredLocked(c.after)
	case c.after < l.floor:
		return Batch{}, nil, &Error{Kind: ErrSlow, Detail: fmt.Sprintf(
			"stopped reading at revision %d, the oldest changes kept follow revision %d", c.after, l.floor)}
	}
	if ahead := l.sinceLocked(c.after); len(ahead) > 0 {
		return c.bundle(ahead), nil, nil
	}
	c.after = max(c.after, l.head)
	return Batch{}, l.moved, nil
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
