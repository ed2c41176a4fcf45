package query

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
)

// Errors of Try.
var (
	// ErrFull means that the number of values has reached the Quota.
	ErrFull = errors.New("too many results are kept")
	// ErrDear means that the computation needs more steps than Limits allow.
	ErrDear = errors.New("too many steps")
)

// Quota bounds the number of values that several graphs hold together. The values
// of a graph count until Discard or, without it, until the garbage collector finds
// the graph. A Quota is safe for concurrent use.
type Quota struct {
	most int64 // 0 for no bound
	used atomic.Int64
}

// NewQuota returns a Quota that allows the given number of values; 0 means no
// bound.
func NewQuota(most int) *Quota { return &Quota{most: int64(most)} }

// Used returns the current number of values.
func (q *Quota) Used() int { return int(q.used.Load()) }

// Most returns the number of values that are allowed; 0 means no bound.
func (q *Quota) Most() int { return int(q.most) }

// tally counts the values of one graph and adds them to its Quota.
type tally struct {
	quota *Quota
	size  atomic.Int64
	ended atomic.Bool
}

func (t *tally) add(n int64) {
	t.size.Add(n)
	t.quota.used.Add(n)
}

// end removes the graph's values from the Quota, once.
func (t *tally) end() {
	if t.ended.CompareAndSwap(false, true) {
		t.quota.used.Add(-t.size.Load())
	}
}

// Discard removes the graph's values from its Quota now. It waits for Do to end. Do not use
// the graph afterwards.
func (g *Graph) Discard() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.tally.end()
}

// attempt is a computation that may be aborted.
type attempt struct {
	ctx   context.Context
	most  int64 // number of values
	steps int64 // number of steps left
}

// broken is the panic value of an aborted computation.
type broken struct{ error }

// Limits bounds one computation. 0 means no limit.
type Limits struct {
	Steps int // computed results plus values read
	// Share is the part of the Quota, in percent, that must stay free for the
	// computation to continue. This leaves room for computations with a smaller
	// Share.
	Share int
}

// Try calls do, which reads results within the limits, and aborts it when ctx ends.
// Try must be called within Do. The values that do has computed are dropped when Do
// returns, unless a kept result depends on them. The next reader computes the
// results that were aborted. The error is ErrFull, ErrDear or that of ctx.
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

// ctxEvery is the number of steps between two checks of the context.
const ctxEvery = 1 << 10

// yieldEvery is the number of steps between two yields of the processor. A
// goroutine that does not yield keeps the processor for 10 ms.
const yieldEvery = 1 << 6

// step counts a step and aborts a computation that has made too many.
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

// admit aborts a computation that would hold too many values.
func (g *Graph) admit() {
	if a := g.attempt; a != nil && a.most > 0 && g.tally.quota.used.Load() > a.most {
		panic(broken{ErrFull})
	}
}
