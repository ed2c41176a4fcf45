package etcd

import (
	"context"

	"github.com/pilot-api/pilot-api/store"
	"github.com/pilot-api/pilot-api/store/etcd/embedded"
)

// room admits writes to a store that has a quota.
type room interface {
	Admit(ctx context.Context, bytes int64) error
	AdmitNow(bytes int64) error
}

// admit refuses a write that makes a full store grow.
func (s *Store) admit(ctx context.Context, w *write) error {
	door, ok := s.client.KV.(room)
	if !ok {
		return nil
	}
	bytes := w.growth()
	switch {
	case bytes <= 0:
		return nil
	case w.asked:
		return door.Admit(ctx, bytes)
	}
	// A guess does not wait. After a failed guess etcd is asked, and that write waits.
	return door.AdmitNow(bytes)
}

// growth returns how many bytes creates and updates write. It does not count operations
// that lead to the end of an object: its delete, even if that only marks the object
// because of its finalizers, and the updates that remove those.
func (w *write) growth() int64 {
	bytes := int64(0)
	for i, op := range w.ops {
		if op.Verb != store.OpDelete && !w.idle(i) && !w.leadsToEnd(i) {
			bytes += int64(len(w.values[i])+len(w.records[i])) + 2*embedded.EntryOverhead
		}
	}
	return bytes
}

// leadsToEnd reports whether an update removes a marked object or makes it no larger.
func (w *write) leadsToEnd(i int) bool {
	next, current := w.next[i], w.current[i]
	if next == nil || current == nil {
		return next == nil
	}
	return next.Meta.DeletionTimestamp != nil && len(next.JSON()) <= len(current.JSON())
}
