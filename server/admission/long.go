package admission

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
	"golang.org/x/time/rate"
)

const (
	// longShare is the part of the time of all processors that long work may take.
	longShare = 0.05
	// longSavings is how much of that time may be saved up, for each processor.
	longSavings = 250 * time.Millisecond
	// mostDebt bounds how long work waits because other work exceeded its share. It is
	// less than any caller waits: however long a piece of work was, the waiting ones
	// get their turn, one after the other.
	mostDebt = 15 * time.Second
	// readShare and readSavings are for large answers, which nobody can make smaller
	// and many clients may want at once.
	readShare   = 0.25
	readSavings = time.Second
	// mostLong bounds the callers that wait.
	mostLong = 32
)

// Patience is how long a request waits for its turn to do long work. It is longer than
// mostDebt.
const Patience = 20 * time.Second

// ErrCrowded reports that the maximum number of callers is already waiting.
var ErrCrowded = errors.New("too much long work is waiting")

// Long admits work that keeps a processor busy for long, such as decoding a large request.
// Small requests are answered as fast as without that work: Long always leaves one
// processor to them, and most of the time of all processors. It counts time when the work
// is done, so work of any length may begin. It forgives time beyond mostDebt.
type Long struct {
	slots   *semaphore.Weighted
	waiting *semaphore.Weighted
	line    *semaphore.Weighted // callers of Enter, while they wait for time and work
	time    *rate.Limiter       // one token is one nanosecond

	mu   sync.Mutex
	next time.Time // when the next work may begin
}

// NewLong returns an admission of long work to a number of processors.
func NewLong(processors int) *Long { return newLong(processors, longShare, longSavings) }

// NewLongReads returns an admission of large answers, which have their own share.
func NewLongReads(processors int) *Long { return newLong(processors, readShare, readSavings) }

func newLong(processors int, share float64, savings time.Duration) *Long {
	each, slots := float64(processors), int64(max(1, processors-1))
	return &Long{
		slots:   semaphore.NewWeighted(slots),
		line:    semaphore.NewWeighted(slots),
		waiting: semaphore.NewWeighted(mostLong),
		time:    rate.NewLimiter(rate.Limit(share*each*float64(time.Second)), int(float64(savings)*each)),
	}
}

// Enter waits until work may begin. The caller must call leave once, when the work
// is done. The error is ErrCrowded or ctx's.
func (l *Long) Enter(ctx context.Context) (leave func(), err error) {
	if !l.waiting.TryAcquire(1) {
		return nil, ErrCrowded
	}
	defer l.waiting.Release(1)
	if err := l.line.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	done, err := l.enterNow(ctx)
	if err != nil {
		l.line.Release(1)
		return nil, err
	}
	return func() {
		done()
		l.line.Release(1)
	}, nil
}

func (l *Long) enterNow(ctx context.Context) (leave func(), err error) {
	if err := l.await(ctx); err != nil {
		return nil, err
	}
	return l.EnterOwing(ctx)
}

// EnterOwing is Enter for work that must not wait until excess time is made up for, such as
// publishing written objects. It waits only for a processor. The error is ctx's.
func (l *Long) EnterOwing(ctx context.Context) (leave func(), err error) {
	if err := l.slots.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	began := time.Now()
	return func() {
		l.Spend(time.Since(began))
		l.slots.Release(1)
	}, nil
}

// await waits until excess time is made up for.
func (l *Long) await(ctx context.Context) error {
	for {
		l.mu.Lock()
		wait := time.Until(l.next)
		l.mu.Unlock()
		if wait <= 0 {
			return ctx.Err()
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
	}
}

// Spend counts the time of long work that did not Enter.
func (l *Long) Spend(took time.Duration) {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	most := now.Add(mostDebt)
	for took > 0 && l.next.Before(most) {
		part := min(took, time.Duration(l.time.Burst()))
		took -= part
		if next := now.Add(l.time.ReserveN(now, int(part)).DelayFrom(now)); next.After(l.next) {
			l.next = earlier(next, most)
		}
	}
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
