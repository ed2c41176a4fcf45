package server

import (
	"context"
	"runtime"
	"sync"
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

// take waits for a turn; done ends it, at the latest after maxTurn it ends by
// itself. When ctx ends first, there is nothing left to write for.
func (t turns) take(ctx context.Context) (done func(), err error) {
	select {
	case t <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	end := sync.OnceFunc(func() { <-t })
	late := time.AfterFunc(maxTurn, end)
	return func() {
		late.Stop()
		end()
	}, nil
}
