package cache

import (
	"context"
	"sync"
	"time"

	"github.com/pilot-api/pilot-api/store"
)

// askTimeout bounds one question for the store's revision. Readers wait only as long as
// their own contexts allow.
const askTimeout = 5 * time.Second

// readIndex asks for the source's revision on behalf of many readers. An answer is
// linearizable only for readers that came before its question was sent. So at most one
// question is in flight, and one more collects readers.
type readIndex struct {
	source store.Reader
	turn   chan struct{} // holds a token while a question is in flight

	mu   sync.Mutex
	next *revisionRequest // not sent yet, so readers may join it
	// answered is when the last answer came, or when the index was made. failing means
	// that the last question had no answer.
	answered time.Time
	failing  bool
}

type revisionRequest struct {
	done     chan struct{}
	revision int64
	err      error
}

func newReadIndex(source store.Reader) *readIndex {
	return &readIndex{source: source, turn: make(chan struct{}, 1), answered: time.Now()}
}

// revision returns the newest revision of the source, not older than any write
// acknowledged before the call.
func (f *readIndex) revision(ctx context.Context) (int64, error) {
	if clock, ok := f.source.(store.Timekeeper); ok {
		if now, ok := clock.Now(ctx); ok {
			return now, nil
		}
	}
	if since, down := f.outage(); down {
		f.join() // The answer, if one comes, is for later readers.
		return 0, &store.Error{Kind: store.ErrUnavailable, Detail: store.Outage{Since: since}.String()}
	}
	return f.asked(ctx)
}

// outageFrom is how long a source that fails must have been silent until readers no
// longer wait for it.
const outageFrom = 3 * time.Second

// outage returns since when the source has not answered, if it does not.
func (f *readIndex) outage() (since time.Time, down bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.answered, f.failing && time.Since(f.answered) >= outageFrom
}

// asked is revision, but it always asks the source.
func (f *readIndex) asked(ctx context.Context) (int64, error) {
	q := f.join()
	select {
	case <-q.done:
		return q.revision, q.err
	case <-ctx.Done():
		return 0, &store.Error{Kind: store.ErrUnavailable, Detail: "the store does not tell its revision", Cause: ctx.Err()}
	}
}

func (f *readIndex) join() *revisionRequest {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.next == nil {
		f.next = &revisionRequest{done: make(chan struct{})}
		go f.ask(f.next)
	}
	return f.next
}

func (f *readIndex) ask(q *revisionRequest) {
	f.turn <- struct{}{}
	defer func() { <-f.turn }()
	f.mu.Lock()
	f.next = nil // From here on no reader joins.
	f.mu.Unlock()
	// Many readers share the question, so no single reader's context ends it.
	ctx, cancel := context.WithTimeout(context.Background(), askTimeout)
	defer cancel()
	q.revision, q.err = f.source.Revision(ctx)
	f.mu.Lock()
	if f.failing = q.err != nil; !f.failing {
		f.answered = time.Now()
	}
	f.mu.Unlock()
	close(q.done)
}
