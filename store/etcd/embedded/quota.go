package embedded

import (
	"context"
	"fmt"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pilot-api/pilot-api/store"
)

// quota bounds what an embedded etcd stores. It checks a write that makes the store
// grow; deletes always pass. etcd's own quota is off: it counts the file with its holes
// and, once reached, refuses every put until an operator disarms its alarm.
type quota struct {
	limit int64
	inUse func() int64 // as of the database's last commit, in bytes

	mu      sync.Mutex
	pending int64 // admitted, perhaps not committed yet
	older   int64 // the part of pending admitted before settled
	settled time.Time
	history int64         // what compactions can still free
	wanted  int64         // the largest write refused since settled
	moved   chan struct{} // closed when any of these changes
}

// EntryOverhead is the approximate cost of an entry in addition to its value, in bytes.
const EntryOverhead = 256

// roomWait is how long a write waits for history to free room.
const roomWait = 5 * time.Second

func newQuota(limit int64, inUse func() int64) *quota {
	return &quota{limit: limit, inUse: inUse, moved: make(chan struct{})}
}

// admit admits a write of a number of bytes, or returns store.ErrFull. If dropping
// history may free enough room, it waits for that.
func (q *quota) admit(ctx context.Context, bytes int64) error {
	ctx, cancel := context.WithTimeout(ctx, roomWait)
	defer cancel()
	for {
		moved, missing := q.try(bytes)
		if missing <= 0 {
			return nil
		}
		if moved == nil {
			return q.full(bytes)
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return q.full(bytes)
		}
	}
}

// try admits the bytes if they fit. If not, it returns how many are missing and a
// channel that is closed when to try again; moved is nil if that is useless.
func (q *quota) try(bytes int64) (moved <-chan struct{}, missing int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	missing = q.inUse() + q.pending + bytes - q.limit
	if missing <= 0 {
		q.pending += bytes
		return nil, missing
	}
	q.wanted = max(q.wanted, bytes)
	switch {
	case missing <= q.history+q.pending: // Pending bytes may already be counted in inUse.
		return q.moved, missing
	default:
		return nil, missing
	}
}

func (q *quota) full(bytes int64) error {
	return &store.Error{Kind: store.ErrFull, Detail: fmt.Sprintf(
		"the store is full: %s of %s (--quota-bytes) are used and %s more are asked for; delete objects, which makes room within seconds, or start with a larger quota",
		inUnits(q.used()), inUnits(q.limit), inUnits(bytes))}
}

// used returns what is stored, including what may be pending.
func (q *quota) used() int64 {
	used, _ := q.count()
	return used
}

// count returns used, and the part of it that may be stored already and so be counted
// twice.
func (q *quota) count() (used, pending int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.inUse() + q.pending, q.pending
}

// refused returns the size of the largest write refused since settle, 0 if there was
// none.
func (q *quota) refused() int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.wanted
}

// settle records the size of history and drops pending bytes that were committed
// meanwhile: after two steps of keepInterval they are in inUse.
func (q *quota) settle(history int64, now time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if now.Sub(q.settled) >= keepInterval {
		q.pending -= q.older
		q.older, q.settled = q.pending, now
	}
	q.history, q.wanted = history, 0
	close(q.moved)
	q.moved = make(chan struct{})
}

// KV accesses an embedded etcd, and has the quota for its stored bytes. It does not check
// requests: a writer calls Admit before it writes.
type KV struct {
	clientv3.KV
	quota *quota
}

// Admit admits a write of a number of bytes, or returns store.ErrFull. If dropping history
// may free enough space, it waits for that, 5 seconds at most.
func (k KV) Admit(ctx context.Context, bytes int64) error { return k.quota.admit(ctx, bytes) }

// AdmitNow is Admit without the wait.
func (k KV) AdmitNow(bytes int64) error {
	if _, missing := k.quota.try(bytes); missing > 0 {
		return k.quota.full(bytes)
	}
	return nil
}

// inUnits formats a number of bytes for people.
func inUnits(bytes int64) string {
	for _, u := range []struct {
		name string
		size int64
	}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}} {
		if bytes >= u.size {
			return fmt.Sprintf("%.1f %s", float64(bytes)/float64(u.size), u.name)
		}
	}
	return fmt.Sprintf("%d bytes", bytes)
}
