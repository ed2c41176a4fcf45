package watch

import (
	"context"
	"runtime"
	"sync/atomic"
	"time"
)

// maxTurn is how long a watch may write before the next one may start as well: it
// may be waiting for a client that does not read.
const maxTurn = 20 * time.Millisecond

// turns limit the watches that write at a time to the number of processors. When
// hundreds catch up at once, they wait for each other in a line, and other reads
// and writes do not wait behind all of them.
type turns chan struct{}

func newTurns() turns { return make(turns, runtime.GOMAXPROCS(0)) }

// turn belongs to one watch, which uses it for one write after the other.
type turn struct {
	line  turns
	late  *time.Timer
	taken atomic.Bool
}

func (t turns) turn() *turn {
	u := &turn{line: t}
	u.late = time.AfterFunc(maxTurn, u.release)
	u.late.Stop()
	return u
}

// take waits for the turn. end ends it; after maxTurn it ends by itself. take
// returns an error if ctx ends first.
func (u *turn) take(ctx context.Context) error {
	select {
	case u.line <- struct{}{}:
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

// release is also called by the timer, which may fire before turns.turn has set
// u.late, so release does not use it. It may run once more, and late: then it ends
// the next turn early, which does no harm.
func (u *turn) release() {
	if u.taken.CompareAndSwap(true, false) {
		<-u.line
	}
}
