package etcd

import (
	"context"
	"sync"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

// turns lets those who change one object by function at it one after the other,
// in the order in which they came. Each would write on condition anyway, but
// then all of them work for one who wins, and the unlucky ones never do. Writers
// elsewhere, and those with a whole object, still come in between.
type turns struct {
	mu     sync.Mutex
	queues map[schema.Key]*turn
}

type turn struct {
	taken   chan struct{} // holds one while somebody is at it
	members int           // at it or waiting
}

// take waits for a turn, until ctx ends. done ends the turn.
func (t *turns) take(ctx context.Context, key schema.Key) (done func(), err error) {
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

func (t *turns) join(key schema.Key) *turn {
	t.mu.Lock()
	defer t.mu.Unlock()
	q := t.queues[key]
	if q == nil {
		if t.queues == nil {
			t.queues = map[schema.Key]*turn{}
		}
		q = &turn{taken: make(chan struct{}, 1)}
		t.queues[key] = q
	}
	q.members++
	return q
}

func (t *turns) leave(key schema.Key, q *turn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if q.members--; q.members == 0 {
		delete(t.queues, key)
	}
}
