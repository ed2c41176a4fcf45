package etcd

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pilot-api/pilot-api/store"
)

// The bounds of a batch: in writes, which Limits.Ops bounds too, and in bytes of
// what they put.
const (
	maxBatch   = 64
	batchBytes = 512 << 10
)

// patience is how long a batch that etcd does not answer holds up the next one: it
// may have gone to a member that is silently away.
const patience = 50 * time.Millisecond

// group has those who write while etcd is at it share the next transaction, each
// with its own condition and its own outcome; see docs/decisions/028-speed-of-the-api.md.
// Who comes while nothing is under way goes at once. Transactions of several
// operations go alone.
type group struct {
	mu      sync.Mutex
	waiting []*member
	running bool // somebody sees to those who wait
}

// member is a write in the group.
type member struct {
	*write
	batch *batch // nil while it waits
	done  chan struct{}
	answer
}

// answer is what etcd makes of a write. Without an error and without success its
// condition did not hold, and responses are the present state.
type answer struct {
	succeeded bool
	revision  int64
	responses []*etcdserverpb.ResponseOp
	err       error
}

// batch is writes that are one transaction of etcd.
type batch struct {
	members []*member
	left    int // of the members, before the answer
	cancel  context.CancelFunc
}

// send tries a write. When ctx ends first, what is under way goes on for the
// others.
func (s *Store) send(ctx context.Context, w *write) answer {
	if len(w.ops) > 1 || min(s.limits.Ops, maxBatch) < 2 {
		return s.alone(ctx, w)
	}
	m := &member{write: w, done: make(chan struct{})}
	s.join(m)
	select {
	case <-m.done:
		return m.answer
	case <-ctx.Done():
	}
	if s.group.leave(m) {
		return answer{err: translate(ctx.Err(), w.name())} // Nothing was sent.
	}
	return answer{err: unanswered(ctx.Err(), w.name())}
}

// alone is a transaction of one write.
func (s *Store) alone(ctx context.Context, w *write) answer {
	resp, err := s.client.Txn(ctx).If(w.conditions()...).Then(append(w.puts(), s.keys.tick())...).Else(w.reads()...).Commit()
	if err != nil {
		return answer{err: unanswered(err, w.name())}
	}
	return answer{resp.Succeeded, resp.Header.Revision, resp.Responses, nil}
}

func (s *Store) join(m *member) {
	g := &s.group
	g.mu.Lock()
	defer g.mu.Unlock()
	g.waiting = append(g.waiting, m)
	if !g.running {
		g.running = true
		go s.serve()
	}
}

// leave is what who no longer waits does. It tells whether nothing was sent, and
// nothing will be.
func (g *group) leave(m *member) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if m.batch == nil {
		g.waiting = slices.DeleteFunc(g.waiting, func(other *member) bool { return other == m })
		return true
	}
	if m.batch.left++; m.batch.left == len(m.batch.members) {
		m.batch.cancel()
	}
	return false
}

// serve sends what waits, batch by batch, until nothing does.
func (s *Store) serve() {
	for {
		ctx, cancel := context.WithCancel(context.Background())
		b := s.group.next(min(s.limits.Ops, maxBatch), cancel)
		if b == nil {
			cancel()
			return
		}
		answered := make(chan struct{})
		go func() {
			defer cancel()
			defer close(answered)
			s.commitBatch(ctx, b)
		}()
		late := time.NewTimer(patience)
		select {
		case <-answered:
		case <-late.C:
		}
		late.Stop()
	}
}

// next takes a batch out of those who wait, in their order, each object once.
func (g *group) next(most int, cancel context.CancelFunc) *batch {
	g.mu.Lock()
	defer g.mu.Unlock()
	b := &batch{cancel: cancel}
	size, keys := 0, map[string]bool{}
	g.waiting = slices.DeleteFunc(g.waiting, func(m *member) bool {
		bytes := len(m.values[0]) + len(m.records[0])
		if len(b.members) > 0 && (len(b.members) == most || size+bytes > batchBytes || keys[m.keys[0]]) {
			return false
		}
		b.members, m.batch = append(b.members, m), b
		size += bytes
		keys[m.keys[0]] = true
		return true
	})
	if len(b.members) == 0 {
		g.running = false
		return nil
	}
	return b
}

// commitBatch sends a batch and tells its members what came of them. If etcd wants
// none of it, such as for its length, each is tried alone.
func (s *Store) commitBatch(ctx context.Context, b *batch) {
	if len(b.members) == 1 || !s.together(ctx, b.members) {
		for _, m := range b.members {
			m.answer = s.alone(ctx, m.write)
			close(m.done)
		}
	}
}

// together is a transaction of transactions. It reports false if etcd refuses it.
func (s *Store) together(ctx context.Context, members []*member) bool {
	ops := make([]clientv3.Op, 0, len(members)+1)
	for _, m := range members {
		ops = append(ops, clientv3.OpTxn(m.conditions(), m.puts(), m.reads()))
	}
	resp, err := s.client.Txn(ctx).Then(append(ops, s.keys.tick())...).Commit()
	if refused := refusal(err, members[0].name()); err != nil && refused != nil && !errors.Is(refused, store.ErrFull) {
		return false
	}
	for i, m := range members {
		if err != nil {
			m.answer = answer{err: unanswered(err, m.name())}
		} else {
			own := resp.Responses[i].GetResponseTxn()
			m.answer = answer{own.Succeeded, resp.Header.Revision, own.Responses, nil}
		}
		close(m.done)
	}
	return true
}
