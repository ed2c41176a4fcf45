package server

import (
	"context"
	"runtime"
	"sync/atomic"
	"time"
)

// maxTurn is how long a watch may write before the next one gets its turn as
// well: it may be waiting for a client that does not read.
const maxTurn = 20 * time.Millisecond

// turns are what watches take to write: no more of them write at a time than
// there are processors. When hundreds catch up at once they then wait for each
// other in a line, and not every read and write of others behind all of them.
type turns chan struct{}

func newTurns() turns { return make(turns, runtime.GOMAXPROCS(0)) }

// turn is that of one watch, for one write after the other.
type turn struct {
	of    turns
	late  *time.Timer
	taken atomic.Bool
}

func (t turns) turn() *turn {
	u := &turn{of: t}
	u.late = time.AfterFunc(maxTurn, u.release)
	u.late.Stop()
	return u
}

// take waits for the turn; end ends it, at the latest after maxTurn it ends by
// itself. When ctx ends first, there is nothing left to write for.
func (u *turn) take(ctx context.Context) error {
	select {
	case u.of <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	u.taken.Store(true)
	u.late.Reset(maxTurn)
	return nil
}

func (u *turn) end() {
	u.late.Stop()
	u.release()
}

// release is also the timer's, which may be faster than whoever makes it: it has
// to do without. It may come once more, and late: then it ends the next turn early,
// which does no harm.
func (u *turn) release() {
	if u.taken.CompareAndSwap(true, false) {
		<-u.of
	}
}
