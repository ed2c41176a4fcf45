package etcd

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
	"github.com/pilot-api/pilot-api/store/storetest"
)

// TestQuota checks that a write that does not fit is refused immediately, unless
// history can be dropped or admitted writes turn out to be counted twice.
func TestQuota(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var inUse atomic.Int64
		inUse.Store(50)
		q := newQuota(100, inUse.Load)
		settle := func(history int64) {
			time.Sleep(keepInterval)
			q.settle(history, time.Now())
		}
		try := func(bytes int64) (time.Duration, error) {
			began := time.Now()
			err := q.admit(t.Context(), bytes)
			return time.Since(began), err
		}
		q.settle(0, time.Now())
		if _, err := try(30); err != nil {
			t.Errorf("what fits: %v", err)
		}
		if waited, err := try(60); !errors.Is(err, store.ErrFull) || waited > 0 {
			t.Errorf("much too much: %v after %s", err, waited)
		}
		inUse.Store(80) // The 30 are committed, but stay pending for two more steps.
		go func() {
			settle(0)
			settle(0)
		}()
		if waited, err := try(20); err != nil || waited == 0 {
			t.Errorf("what fits once the rest is settled: %v after %s", err, waited)
		}
		inUse.Store(100)
		settle(0)
		settle(0)
		if waited, err := try(1); !errors.Is(err, store.ErrFull) || waited > 0 {
			t.Errorf("nothing left: %v after %s", err, waited)
		}
		settle(40)
		go func() {
			time.Sleep(time.Second)
			inUse.Store(60)
			settle(0)
		}()
		if waited, err := try(30); err != nil || waited < time.Second {
			t.Errorf("what fits once history is gone: %v after %s", err, waited)
		}
		settle(90)
		if waited, err := try(20); !errors.Is(err, store.ErrFull) || waited != roomWait {
			t.Errorf("history that does not go: %v after %s", err, waited)
		}
	})
}

// TestGrowth checks that operations that lead to the end of an object need no room, and
// that all others do, even if the object is marked for deletion.
func TestGrowth(t *testing.T) {
	marked := func(size int, finalizers ...string) *schema.Object {
		obj := storetest.Large(t, "default", "a", size)
		meta := obj.Meta
		meta.ResourceVersion, meta.Finalizers, meta.DeletionTimestamp = "7", finalizers, &metav1.Time{Time: time.Unix(1, 0)}
		obj, err := obj.WithMeta(meta)
		if err != nil {
			t.Fatal(err)
		}
		return obj
	}
	small := storetest.Large(t, "default", "a", 100)
	two := marked(100, "example.com/a", "example.com/b")
	for _, c := range []struct {
		name          string
		verb          store.Verb
		current, next *schema.Object
		grows         bool
	}{
		{"a create", store.OpCreate, nil, small, true},
		{"an update", store.OpUpdate, small, storetest.Large(t, "default", "a", 99), true},
		{"an update that changes nothing", store.OpUpdate, small, small, false},
		{"a delete", store.OpDelete, small, nil, false},
		{"a delete that marks", store.OpDelete, small, two, false},
		{"a finalizer that goes", store.OpUpdate, two, marked(100, "example.com/b"), false},
		{"the last finalizer", store.OpUpdate, two, nil, false},
		{"a marked object that becomes larger", store.OpUpdate, two, marked(10_000, "example.com/a"), true},
	} {
		w := &write{
			ops: []store.Op{{Verb: c.verb}}, current: []*schema.Object{c.current}, next: []*schema.Object{c.next},
			values: [][]byte{[]byte("value")}, records: [][]byte{nil},
		}
		if got := w.growth() > 0; got != c.grows {
			t.Errorf("%s: grows %t, want %t", c.name, got, c.grows)
		}
	}
}

// TestOnlyTheAskedWait checks that a write that first uses a guess and then etcd's
// answer waits for room only once.
func TestOnlyTheAskedWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQuota(100, func() int64 { return 100 })
		q.settle(90, time.Now())
		s := &Store{client: &clientv3.Client{KV: room{nil, q}}}
		obj := storetest.Rule(t, "default", "a", 1)
		for asked, want := range map[bool]time.Duration{false: 0, true: roomWait} {
			w := &write{
				ops: []store.Op{{Verb: store.OpCreate, Object: obj}}, current: []*schema.Object{nil},
				next: []*schema.Object{obj}, values: [][]byte{nil}, records: [][]byte{nil}, asked: asked,
			}
			q.history = w.growth()
			began := time.Now()
			if err := s.admit(t.Context(), w); !errors.Is(err, store.ErrFull) || time.Since(began) != want {
				t.Errorf("asked %t: %v after %s, want %s", asked, err, time.Since(began), want)
			}
		}
	})
}
