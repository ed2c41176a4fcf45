package watch

import (
	"context"
	"runtime"
	"sync/atomic"
	"time"
)

// maxWrite is how long a watch may write before the next one may start as well: it
// may be waiting for a client that does not read.
const maxWrite = 20 * time.Millisecond

// writeSlots limit the watches that write at a time to the number of processors. When
// hundreds catch up at once, they wait for each other in a queue, and other reads
// and writes do not wait behind all of them.
type writeSlots chan struct{}

func newWriteSlots() writeSlots { return make(writeSlots, runtime.GOMAXPROCS(0)) }

// writeSlot belongs to one watch, which uses it for one write after the other.
type writeSlot struct {
	slots writeSlots
	late  *time.Timer
	taken atomic.Bool
}

func (t writeSlots) newSlot() *writeSlot {
	u := &writeSlot{slots: t}
	u.late = time.AfterFunc(maxWrite, u.release)
	u.late.Stop()
	return u
}

// take waits for a slot. end frees it; after maxWrite it is freed by itself. take
// returns an error if ctx ends first.
func (u *writeSlot) take(ctx context.Context) error {
	select {
	case u.slots <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	u.taken.Store(true)
	u.late.Reset(maxWrite)
	return nil
}

func (u *writeSlot) end() {
	u.late.Stop()
	u.release()
}

// release is also called by the timer, which may fire before writeSlots.newSlot has set
// u.late, so release does not use it. It may run once more, and late: then it ends
// the next slot early, which does no harm.
func (u *writeSlot) release() {
	if u.taken.CompareAndSwap(true, false) {
		<-u.slots
	}
}
