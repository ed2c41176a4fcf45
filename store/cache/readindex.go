package cache

import (
	"context"
	"sync"
	"time"

	"github.com/pilot-api/pilot-api/store"
)

// askTimeout bounds one question for the store's revision. Readers wait no
// longer than their own contexts.
const askTimeout = 5 * time.Second

// readIndex finds out the revision of the source for all readers at once. An
// answer is linearizable for those who came before its question was sent, and
// for nobody else; so there is at most one question under way, and one that is
// being gathered for.
type readIndex struct {
	source store.Reader
	turn   chan struct{} // holds the right to have a question under way

	mu   sync.Mutex
	next *revisionRequest // not sent yet: may still be joined
}

type revisionRequest struct {
	done     chan struct{}
	revision int64
	err      error
}

func newReadIndex(source store.Reader) *readIndex {
	return &readIndex{source: source, turn: make(chan struct{}, 1)}
}

// revision is the newest revision of the source, not older than any write
// acknowledged before the call.
func (f *readIndex) revision(ctx context.Context) (int64, error) {
	if clock, ok := f.source.(store.Timekeeper); ok {
		if now, ok := clock.Now(ctx); ok {
			return now, nil
		}
	}
	return f.asked(ctx)
}

// asked is revision by a question to the source in any case.
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
	f.next = nil // From here on nobody joins.
	f.mu.Unlock()
	// It is everybody's question, so no single reader's context ends it.
	ctx, cancel := context.WithTimeout(context.Background(), askTimeout)
	defer cancel()
	q.revision, q.err = f.source.Revision(ctx)
	close(q.done)
}
