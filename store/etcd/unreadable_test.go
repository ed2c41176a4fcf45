package etcd_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
	"github.com/pilot-api/pilot-api/store/etcd"
	"github.com/pilot-api/pilot-api/store/etcd/etcdtest"
	"github.com/pilot-api/pilot-api/store/storetest"
)

// damaged is a store in which something else wrote over an object.
type damaged struct {
	*etcd.Store
	client *clientv3.Client
	key    schema.Key
}

const damagedName = etcd.DefaultPrefix + "/objects/config.istio.io/routerules/default/a"

func newDamaged(t *testing.T) (damaged, *schema.Object) {
	t.Helper()
	client := etcdtest.Start(t).Client()
	d := damaged{Store: etcd.New(client, etcd.DefaultPrefix, quiet), client: client}
	made, err := d.Create(t.Context(), storetest.Rule(t, "default", "a", 1))
	if err != nil {
		t.Fatal(err)
	}
	d.key = made.Key()
	put(t, client, damagedName, "{")
	return d, made
}

// TestUnreadableIsAbsentToReaders, and its name is taken all the same.
func TestUnreadableIsAbsentToReaders(t *testing.T) {
	d, _ := newDamaged(t)
	if _, err := d.Get(t.Context(), d.key, store.ReadOptions{}); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("get: %v", err)
	}
	if list, err := d.List(t.Context(), store.Scope{}, store.ListOptions{}); err != nil || len(list.Items) != 0 {
		t.Errorf("list: %v, %v", list, err)
	}
	if _, err := d.Create(t.Context(), storetest.Rule(t, "default", "a", 2)); !errors.Is(err, store.ErrExists) {
		t.Errorf("create: %v", err)
	}
}

func TestUnreadableCanBeDeleted(t *testing.T) {
	d, made := newDamaged(t)
	for _, pre := range []store.Preconditions{{UID: string(made.Meta.UID)}, {ResourceVersion: made.Meta.ResourceVersion}} {
		if _, err := d.Delete(t.Context(), d.key, pre); !errors.Is(err, store.ErrConflict) {
			t.Errorf("delete of what was there, %+v: %v", pre, err)
		}
	}
	gone, err := d.Delete(t.Context(), d.key, store.Preconditions{})
	if err != nil {
		t.Fatal(err)
	}
	if newest, err := d.Revision(t.Context()); err != nil || gone.Key() != d.key || gone.Revision() != newest {
		t.Errorf("deleted %s at %d, store at %d, %v", gone.Key(), gone.Revision(), newest, err)
	}
	if _, err := d.Delete(t.Context(), d.key, store.Preconditions{}); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("second delete: %v", err)
	}
}

func TestUnreadableCanBeReplaced(t *testing.T) {
	d, made := newDamaged(t)
	if _, err := d.Update(t.Context(), made); !errors.Is(err, store.ErrConflict) {
		t.Errorf("update of what was there: %v", err)
	}
	repaired, err := d.Update(t.Context(), storetest.Rule(t, "default", "a", 2))
	if err != nil {
		t.Fatal(err)
	}
	if meta := repaired.Meta; meta.UID == "" || meta.UID == made.Meta.UID || meta.CreationTimestamp.IsZero() || meta.Generation != 1 {
		t.Errorf("not a new object: %+v", meta)
	}
	if got, err := d.Get(t.Context(), d.key, store.ReadOptions{}); err != nil || got.Revision() != repaired.Revision() {
		t.Errorf("get: %v, %v", got, err)
	}
}

// TestWatchOfUnreadable: whatever is done to a key, a watch tells what readers
// see: an object that cannot be read is not there.
func TestWatchOfUnreadable(t *testing.T) {
	d, made := newDamaged(t) // 0, and damaged at 1
	good := storetest.Rule(t, "default", "a", 3).Encoded()
	other := storetest.Rule(t, "default", "b", 3).Encoded()
	put(t, d.client, damagedName, "still broken") // 2
	put(t, d.client, damagedName, string(good))   // 3
	put(t, d.client, damagedName, string(other))  // 4: under the name of another
	remove(t, d.client, damagedName)              // 5
	put(t, d.client, damagedName, "{")            // 6
	if _, err := d.Update(t.Context(), storetest.Rule(t, "default", "a", 4)); err != nil {
		t.Fatal(err)
	}
	put(t, d.client, damagedName, "{") // 8
	gone, err := d.Delete(t.Context(), d.key, store.Preconditions{})
	if err != nil {
		t.Fatal(err)
	}
	w, err := d.Watch(t.Context(), store.Scope{}, 1)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for b := range w.Batches() {
		for _, ev := range b.Events {
			got = append(got, fmt.Sprintf("%s %s@%d", ev.Type, ev.Object.Meta.Name, ev.Object.Revision()-made.Revision()))
		}
		if b.Revision == gone.Revision() {
			break
		}
	}
	want := []string{"ADDED a@0", "DELETED a@1", "ADDED a@3", "DELETED a@4", "ADDED a@7", "DELETED a@8"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func remove(t *testing.T, client *clientv3.Client, key string) {
	t.Helper()
	if _, err := client.Delete(t.Context(), key); err != nil {
		t.Fatal(err)
	}
}
