package etcd

import (
	"context"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
	"github.com/pilot-api/pilot-api/store/storetest"
)

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

// asking is a room that notes how it is asked.
type asking struct {
	clientv3.KV
	waits, guesses int
}

func (a *asking) Admit(context.Context, int64) error { a.waits++; return nil }

func (a *asking) AdmitNow(int64) error { a.guesses++; return nil }

// TestOnlyTheAskedWait checks that a write that first uses a guess and then etcd's
// answer waits for room only once.
func TestOnlyTheAskedWait(t *testing.T) {
	door := &asking{}
	s := &Store{client: &clientv3.Client{KV: door}}
	obj := storetest.Rule(t, "default", "a", 1)
	for _, asked := range []bool{false, true} {
		w := &write{
			ops: []store.Op{{Verb: store.OpCreate, Object: obj}}, current: []*schema.Object{nil},
			next: []*schema.Object{obj}, values: [][]byte{nil}, records: [][]byte{nil}, asked: asked,
		}
		if err := s.admit(t.Context(), w); err != nil {
			t.Error(err)
		}
	}
	if door.waits != 1 || door.guesses != 1 {
		t.Errorf("asked %d times with a wait and %d times without, want once each", door.waits, door.guesses)
	}
}
