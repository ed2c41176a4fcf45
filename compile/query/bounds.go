package query

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
)

// Errors of Try.
var (
	// ErrFull: there are as many values as the Quota allows.
	ErrFull = errors.New("too many results are kept")
	// ErrDear: the computation takes more steps than it may.
	ErrDear = errors.New("too many steps")
)

// Quota bounds the values that some graphs keep together. The values of a graph count
// until Discard, or until the garbage collector finds a graph that nobody discarded. A
// Quota is safe for concurrent use.
type Quota struct {
	most int64 // 0 for no bound
	used atomic.Int64
}

// NewQuota allows so many values; 0 for any number.
func NewQuota(most int) *Quota { return &Quota{most: int64(most)} }

// Used is how many values there are.
func (q *Quota) Used() int { return int(q.used.Load()) }

// Most is how many values are allowed, 0 for any number.
func (q *Quota) Most() int { return int(q.most) }

// tally counts the values of one graph, also for its Quota.
type tally struct {
	quota *Quota
	size  atomic.Int64
	ended atomic.Bool
}

func (t *tally) add(n int64) {
	t.size.Add(n)
	t.quota.used.Add(n)
}

// end takes the values out of the Quota, once.
func (t *tally) end() {
	if t.ended.CompareAndSwap(false, true) {
		t.quota.used.Add(-t.size.Load())
	}
}

// Discard takes the values of the graph out of its Quota now. It waits for Do to end.
// The graph must not be used after it.
func (g *Graph) Discard() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.tally.end()
}

// attempt is a computation that may be broken off.
type attempt struct {
	ctx   context.Context
	most  int64 // values
	steps int64 // that are left
}

// broken is what a computation panics with when it is broken off.
type broken struct{ error }

// Limits of one computation. A limit of 0 is none.
type Limits struct {
	Steps int // results that are computed, and values that they read
	// Share of the Quota, in percent, that must be free for a computation to go
	// on: so there is room for others that have none of this share.
	Share int
}

// Try has do read results within limits, and breaks it off when ctx ends. It must be
// called within Do. What do computed and nothing kept depends on goes when Do
// returns, and what was broken off is computed by the next reader. The error is
// ErrFull, ErrDear or that of ctx.
func (g *Graph) Try(ctx context.Context, l Limits, do func()) (err error) {
	before := g.attempt
	g.attempt = &attempt{ctx: ctx, most: g.tally.quota.most * int64(100-l.Share) / 100, steps: int64(l.Steps)}
	defer func() {
		g.attempt = before
		switch p := recover().(type) {
		case nil:
		case broken:
			err = p.error
		default:
			panic(p)
		}
	}()
	if err := ctx.Err(); err != nil {
		return err
	}
	do()
	return nil
}

// ctxEvery is how many steps are made between two looks at the context.
const ctxEvery = 1 << 10

// yieldEvery is how many steps are made before others get the processor: a
// goroutine that does not offer it keeps it for 10 ms.
const yieldEvery = 1 << 6

// step breaks a computation off that has made too many.
func (g *Graph) step() {
	if (g.runs+g.read)%yieldEvery == 0 {
		runtime.Gosched()
	}
	a := g.attempt
	if a == nil {
		return
	}
	a.steps--
	if a.steps == 0 {
		panic(broken{ErrDear})
	}
	if a.steps%ctxEvery == 0 && a.ctx.Err() != nil {
		panic(broken{a.ctx.Err()})
	}
}

// admit breaks a computation off that would keep too many values.
func (g *Graph) admit() {
	if a := g.attempt; a != nil && a.most > 0 && g.tally.quota.used.Load() > a.most {
		panic(broken{ErrFull})
	}
}
