package etcd

import (
	"context"
	"sync"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

// writerQueues queues the writers that change one object by function, in the order in which
// they came. Without it each write would still be conditional, but all writers would
// work while one wins, and some might never win. Writers elsewhere, and those with a
// whole object, do not queue.
type writerQueues struct {
	mu     sync.Mutex
	queues map[schema.Key]*writerQueue
}

type writerQueue struct {
	taken   chan struct{} // has a token while a writer is at work
	members int           // writers at work or waiting
}

// take waits until the writers before it are done, or ctx ends. done lets the next one write.
func (t *writerQueues) take(ctx context.Context, key schema.Key) (done func(), err error) {
	q := t.join(key)
	select {
	case q.taken <- struct{}{}:
		return func() { <-q.taken; t.leave(key, q) }, nil
	case <-ctx.Done():
		t.leave(key, q)
		return nil, &store.Error{
			Kind: store.ErrUnavailable, Key: key, Cause: ctx.Err(),
			Detail: "too many are changing the object at the same time; nothing was written",
		}
	}
}

func (t *writerQueues) join(key schema.Key) *writerQueue {
	t.mu.Lock()
	defer t.mu.Unlock()
	q := t.queues[key]
	if q == nil {
		if t.queues == nil {
			t.queues = map[schema.Key]*writerQueue{}
		}
		q = &writerQueue{taken: make(chan struct{}, 1)}
		t.queues[key] = q
	}
	q.members++
	return q
}

func (t *writerQueues) leave(key schema.Key, q *writerQueue) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if q.members--; q.members == 0 {
		delete(t.queues, key)
	}
}
