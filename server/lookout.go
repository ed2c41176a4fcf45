package server

import (
	"context"
	"log/slog"
	"runtime/debug"
	"sync/atomic"
	"time"
)

// lookout has what a look at something found, and shares it among all who ask: one
// of them looks at a time, and nobody waits for that who can do with the last look.
// When a look panics, what was found before stays. It is safe for concurrent use;
// make it with newLookout.
type lookout[T any] struct {
	of  string // what, for the log
	log *slog.Logger
	// look finds what was so after a time, from what the last look found. How long it
	// waited for others is no cost of this replica.
	look func(before *T, after time.Time) (found *T, waited time.Duration)
	// tell is called with what is found, from then on, in place of what was.
	tell func(before, found *T)

	looking chan struct{} // holds one while somebody looks
	failed  bool          // the last look
	last    atomic.Pointer[sight[T]]
}

// sight is what a look found.
type sight[T any] struct {
	began time.Time
	after time.Time // and it was so after this
	took  time.Duration
	found *T
}

const (
	// statusAge is how old a look may be, and how often watchers have one taken.
	statusAge = 250 * time.Millisecond
	// looksShare is what part of the time looks may take: the longer one takes, the
	// older it may become.
	looksShare = 10
)

// mayAge is how old it may be, and while the next one is under way.
func (s *sight[T]) mayAge() (age, late time.Duration) {
	age = max(statusAge, looksShare*s.took)
	return age, 4 * age
}

// newLookout begins with what is known without a look.
func newLookout[T any](of string, log *slog.Logger, first *T, look func(before *T, after time.Time) (found *T, waited time.Duration)) *lookout[T] {
	l := &lookout[T]{of: of, log: log, look: look, tell: func(*T, *T) {}, looking: make(chan struct{}, 1)}
	l.last.Store(&sight[T]{found: first})
	return l
}

// known is what the last look found.
func (l *lookout[T]) known() *T { return l.last.Load().found }

// recent is what was so a moment ago.
func (l *lookout[T]) recent() *T {
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
	return l.lookLocked(time.Now().Add(-statusAge))
}

// within is what was so within an age, or where that is no less than a moment, as
// recent has it.
func (l *lookout[T]) within(ctx context.Context, age time.Duration) *T {
	if age < statusAge {
		return l.after(ctx, time.Now().Add(-age))
	}
	return l.recent()
}

// after is what was so after a time; or what is known, when ctx ends before that is.
func (l *lookout[T]) after(ctx context.Context, at time.Time) *T {
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
	// Who has come meanwhile can do with the same.
	return l.lookLocked(time.Now())
}

func (l *lookout[T]) done() { <-l.looking }

func (l *lookout[T]) lookLocked(after time.Time) *T {
	before := l.last.Load().found
	next := &sight[T]{began: time.Now(), after: after}
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

// take looks. Of several panics in a row the first is told.
func (l *lookout[T]) take(before *T, after time.Time) (found *T, waited time.Duration) {
	defer func() {
		p := recover()
		if p != nil && !l.failed {
			l.log.Error("panic contained: what was seen before stays", "of", l.of, "panic", p, "stack", string(debug.Stack()))
		}
		if l.failed = p != nil; l.failed {
			found = before
		}
	}()
	return l.look(before, after)
}
