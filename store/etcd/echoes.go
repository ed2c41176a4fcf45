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
// they need not be decoded. What etcd has may be something else, so the bytes
// decide.
type echoes struct {
	mu      sync.Mutex
	objects map[string]*schema.Object // by key in etcd
	size    int
}

// expect is told before a write.
func (e *echoes) expect(key string, obj *schema.Object) {
	e.mu.Lock()
	defer e.mu.Unlock()
	size := len(obj.JSON())
	if e.objects == nil || len(e.objects) >= maxEchoes || e.size+size > echoesSize {
		e.objects, e.size = map[string]*schema.Object{}, 0
	}
	if before := e.objects[key]; before != nil {
		e.size -= len(before.JSON())
	}
	e.objects[key] = obj
	e.size += size
}

// take is the object that a value of etcd was written from, nil if it is not
// known.
func (e *echoes) take(kv *mvccpb.KeyValue) *schema.Object {
	e.mu.Lock()
	defer e.mu.Unlock()
	obj := e.objects[string(kv.Key)]
	if obj == nil || !obj.IsEncodedAs(kv.Value) {
		return nil
	}
	delete(e.objects, string(kv.Key))
	e.size -= len(obj.JSON())
	return obj.AtRevision(kv.ModRevision)
}
