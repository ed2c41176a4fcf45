package etcd

import (
	"sync"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/pilot-api/pilot-api/schema"
)

// The bounds of what is kept until the watch brings it back, in objects and in
// bytes of their JSON. What is forgotten is decoded again.
const (
	maxEchoes  = 1024
	echoesSize = 16 << 20
)

// echoes are objects that this store wrote and its watch has not told yet: there
// they need not be decoded, and are the very ones that the writer was answered with.
// What etcd has may be something else, so the bytes decide.
type echoes struct {
	mu      sync.Mutex
	objects map[string]*echo // by key in etcd
	size    int
}

type echo struct {
	written *schema.Object
	stored  *schema.Object // at its revision, once the writer or the watch has asked
}

// expect is told before a write.
func (e *echoes) expect(key string, obj *schema.Object) {
	e.mu.Lock()
	defer e.mu.Unlock()
	size := len(obj.JSON())
	if e.objects == nil || len(e.objects) >= maxEchoes || e.size+size > echoesSize {
		e.objects, e.size = map[string]*echo{}, 0
	}
	e.forget(key)
	e.objects[key] = &echo{written: obj}
	e.size += size
}

// take is the object that a value of etcd was written from, nil if it is not
// known.
func (e *echoes) take(kv *mvccpb.KeyValue) *schema.Object {
	e.mu.Lock()
	defer e.mu.Unlock()
	one := e.objects[string(kv.Key)]
	if one == nil || !isStoredAs(one.written, kv.Value) {
		return nil
	}
	return e.at(string(kv.Key), one, kv.ModRevision)
}

// wrote is the object that was written under a key, as it is stored.
func (e *echoes) wrote(key string, obj *schema.Object, revision int64) *schema.Object {
	e.mu.Lock()
	defer e.mu.Unlock()
	if one := e.objects[key]; one != nil && one.written == obj {
		return e.at(key, one, revision)
	}
	return obj.AtRevision(revision)
}

// at is made for the first who asks; with the second it is forgotten.
func (e *echoes) at(key string, one *echo, revision int64) *schema.Object {
	if one.stored != nil && one.stored.Revision() == revision {
		e.forget(key)
		return one.stored
	}
	one.stored = one.written.AtRevision(revision)
	return one.stored
}

func (e *echoes) forget(key string) {
	if one := e.objects[key]; one != nil {
		delete(e.objects, key)
		e.size -= len(one.written.JSON())
	}
}
