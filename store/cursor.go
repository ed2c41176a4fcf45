package store

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
)

// cursor is one watch over a ChangeLog. It holds a revision, not a queue. It has no
// goroutine unless it is read by Batches.
type cursor struct {
	log   *ChangeLog
	ctx   context.Context
	scope Scope
	epoch int

	// after is the revision up to which everything was delivered. The log's mutex
	// guards after and parked while the cursor is parked.
	after  int64
	parked bool

	woken  chan struct{} // has a token if there may be something to read
	wished atomic.Bool   // an empty batch was requested
	onEnd  []func()
	stop   func() bool // stops waiting for the end of ctx

	push sync.Once
	out  chan Batch // set once the cursor is read by Batches

	TerminalError
}

func (c *cursor) Ready() <-chan struct{} { return c.woken }

func (c *cursor) sign() {
	select {
	case c.woken <- struct{}{}:
	default: // A token is already there.
	}
}

func (c *cursor) unsign() {
	select {
	case <-c.woken:
	default:
	}
}

func (c *cursor) RequestProgress(context.Context) error {
	c.wished.Store(true)
	c.sign()
	return nil
}

// Pull implements Puller.
func (c *cursor) Pull() (Batch, bool, error) {
	for {
		c.unsign()
		// A progress request counts from now, so the log is read once more.
		wished := c.wished.Swap(false)
		b, some, err := c.next()
		switch {
		case err != nil:
			c.end(err)
			return Batch{}, false, err
		case !some:
			return b, wished, nil
		case wished:
			c.wished.Store(true)
		}
		c.sign() // The cursor is not parked, so nothing else would signal more batches.
		c.after = b.Revision
		if len(b.Events) > 0 {
			return b, true, nil
		}
	}
}

func (c *cursor) end(err error) {
	if c.Err() != nil {
		return
	}
	c.End(err)
	c.log.leave(c)
	c.stop()
	for _, f := range c.onEnd {
		f()
	}
}

// Batches implements Watcher.
func (c *cursor) Batches() <-chan Batch {
	c.push.Do(func() {
		c.out = make(chan Batch)
		go c.pushAll()
	})
	return c.out
}

func (c *cursor) pushAll() {
	defer close(c.out)
	for {
		b, some, err := c.Pull()
		if err != nil {
			return
		}
		if some {
			select {
			case c.out <- b:
			case <-c.ctx.Done():
			}
			continue
		}
		select {
		case <-c.woken:
		case <-c.ctx.Done():
		}
	}
}

// next returns the first batch after the cursor's position. If there is none, it parks
// the cursor at the newest revision and returns an empty batch of that revision.
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
	case c.Err() != nil:
		return Batch{}, false, c.Err()
	case c.ctx.Err() != nil: // Later changes are not delivered.
		return Batch{}, false, c.ctx.Err()
	case c.epoch != l.epoch:
		return Batch{}, false, l.expiredLocked(c.after)
	case c.parked: // No change in its scope has come.
	case c.after < l.floor:
		return Batch{}, false, &Error{Kind: ErrSlow, Detail: fmt.Sprintf(
			"stopped reading at revision %d, the oldest changes kept follow revision %d", c.after, l.floor)}
	default:
		if ahead := l.sinceLocked(c.after); len(ahead) > 0 {
			return c.bundle(ahead), true, nil
		}
	}
	c.after = max(c.after, l.head)
	return Batch{Revision: c.after}, false, nil
}

// A cursor that is at least bundleSize batches behind delivers up to that many as one,
// but not more than about bundleBytes. When many watches catch up, delivering batches
// costs more than their bytes.
const (
	bundleSize  = 64
	bundleBytes = 64 << 10
)

// bundle returns the next batch or several joined into one, limited to the scope.
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
