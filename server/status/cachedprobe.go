package status

import (
	"context"
	"log/slog"
	"runtime/debug"
	"sync/atomic"
	"time"
)

// cachedProbe caches what a probe found and shares it among all callers. One caller
// probes at a time; the others do not wait for it if an older result will do. If a
// probe panics, the previous result stays. Make it with newCachedProbe. It is safe for
// concurrent use.
type cachedProbe[T any] struct {
	subject string // the subject, for the log
	log     *slog.Logger
	// look returns what is true after a time, given the previous result. waited is the
	// time that it spent waiting for others, which does not count as its cost.
	look func(before *T, after time.Time) (found *T, waited time.Duration)
	// tell is called with each new result and the one that it replaces.
	tell func(before, found *T)

	looking chan struct{} // holds a token during a probe
	failed  bool          // whether the last probe panicked
	last    atomic.Pointer[sample[T]]
}

// sample is the result of one probe.
type sample[T any] struct {
	began time.Time
	after time.Time // found was true after this
	took  time.Duration
	found *T
}

const (
	// Age is the maximum age of a result, and the interval at which watchers refresh it.
	Age = 250 * time.Millisecond
	// probeShare bounds the share of time for probes: a result may become probeShare
	// times as old as its probe took.
	probeShare = 10
)

// mayAge returns the age up to which a result is used, and the age up to which it
// is used while the next probe runs.
func (s *sample[T]) mayAge() (age, late time.Duration) {
	age = max(Age, probeShare*s.took)
	return age, 4 * age
}

// newCachedProbe returns a cachedProbe whose first result is first.
func newCachedProbe[T any](of string, log *slog.Logger, first *T, look func(before *T, after time.Time) (found *T, waited time.Duration)) *cachedProbe[T] {
	l := &cachedProbe[T]{subject: of, log: log, look: look, tell: func(*T, *T) {}, looking: make(chan struct{}, 1)}
	l.last.Store(&sample[T]{found: first})
	return l
}

// known returns the last result.
func (l *cachedProbe[T]) known() *T { return l.last.Load().found }

// recent returns a result that was true a moment ago.
func (l *cachedProbe[T]) recent() *T {
	s := l.last.Load()
	age := time.Since(s.began)
	most, late := s.mayAge()
	if age < most {
		return s.found
	}
	select {
	case l.looking <- struct{}{}:
	default:
		if age < late {
			return s.found
		}
		l.looking <- struct{}{}
	}
	defer l.done()
	s = l.last.Load()
	if most, _ = s.mayAge(); time.Since(s.began) < most {
		return s.found
	}
	return l.probeLocked(time.Now().Add(-Age))
}

// within returns a result that was true within an age. From Age on it is the
// same as recent.
func (l *cachedProbe[T]) within(ctx context.Context, age time.Duration) *T {
	if age < Age {
		return l.after(ctx, time.Now().Add(-age))
	}
	return l.recent()
}

// after returns a result that was true after a time, or the last result if ctx ends
// before.
func (l *cachedProbe[T]) after(ctx context.Context, at time.Time) *T {
	if s := l.last.Load(); !s.after.Before(at) {
		return s.found
	}
	select {
	case l.looking <- struct{}{}:
	case <-ctx.Done():
		return l.known()
	}
	defer l.done()
	if s := l.last.Load(); !s.after.Before(at) {
		return s.found
	}
	// The callers that arrived meanwhile can use the same result.
	return l.probeLocked(time.Now())
}

func (l *cachedProbe[T]) done() { <-l.looking }

func (l *cachedProbe[T]) probeLocked(after time.Time) *T {
	before := l.last.Load().found
	next := &sample[T]{began: time.Now(), after: after}
	var waited time.Duration
	next.found, waited = l.take(before, after)
	if l.failed {
		next.after = l.last.Load().after
	}
	next.took = time.Since(next.began) - waited
	l.last.Store(next)
	l.tell(before, next.found)
	return next.found
}

// take runs look. It logs only the first of several panics in a row.
func (l *cachedProbe[T]) take(before *T, after time.Time) (found *T, waited time.Duration) {
	defer func() {
		p := recover()
		if p != nil && !l.failed {
			l.log.Error("panic contained: what was seen before stays", "of", l.subject, "panic", p, "stack", string(debug.Stack()))
		}
		if l.failed = p != nil; l.failed {
			found = before
		}
	}()
	return l.look(before, after)
}
