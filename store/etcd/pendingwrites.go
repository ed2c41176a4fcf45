package etcd

import (
	"sync"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/pilot-api/pilot-api/schema"
)

// Limits of the objects that are kept until the watch returns them: their number, and their
// bytes of JSON. The watch decodes objects beyond the limits.
const (
	maxPending  = 1024
	pendingSize = 16 << 20
)

// pendingWrites holds objects that this store wrote and its watch has not delivered yet. The
// watch need not decode them, and it delivers the same pointers that the writer
// received. etcd may hold something else under the key, so the bytes are compared.
type pendingWrites struct {
	mu      sync.Mutex
	objects map[string]*pendingWrite // by key in etcd
	size    int
}

type pendingWrite struct {
	written *schema.Object
	stored  *schema.Object // with its revision, once the writer or the watch has asked for it
}

// expect adds an object before it is written.
func (e *pendingWrites) expect(key string, obj *schema.Object) {
	e.mu.Lock()
	defer e.mu.Unlock()
	size := len(obj.JSON())
	if e.objects == nil || len(e.objects) >= maxPending || e.size+size > pendingSize {
		e.objects, e.size = map[string]*pendingWrite{}, 0
	}
	e.forget(key)
	e.objects[key] = &pendingWrite{written: obj}
	e.size += size
}

// take returns the object from which a value of etcd was written, or nil if it is
// unknown.
func (e *pendingWrites) take(kv *mvccpb.KeyValue) *schema.Object {
	e.mu.Lock()
	defer e.mu.Unlock()
	one := e.objects[string(kv.Key)]
	if one == nil || !isStoredAs(one.written, kv.Value) {
		return nil
	}
	return e.at(string(kv.Key), one, kv.ModRevision)
}

// wrote returns the object that was written under a key, with its revision.
func (e *pendingWrites) wrote(key string, obj *schema.Object, revision int64) *schema.Object {
	e.mu.Lock()
	defer e.mu.Unlock()
	if one := e.objects[key]; one != nil && one.written == obj {
		return e.at(key, one, revision)
	}
	return obj.AtRevision(revision)
}

// at creates the stored object at the first call and drops the entry at the second.
func (e *pendingWrites) at(key string, one *pendingWrite, revision int64) *schema.Object {
	if one.stored != nil && one.stored.Revision() == revision {
		e.forget(key)
		return one.stored
	}
	one.stored = one.written.AtRevision(revision)
	return one.stored
}

func (e *pendingWrites) forget(key string) {
	if one := e.objects[key]; one != nil {
		delete(e.objects, key)
		e.size -= len(one.written.JSON())
	}
}
