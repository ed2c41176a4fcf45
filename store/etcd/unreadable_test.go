package etcd_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
	"github.com/pilot-api/pilot-api/store/etcd"
	"github.com/pilot-api/pilot-api/store/etcd/etcdtest"
	"github.com/pilot-api/pilot-api/store/storetest"
)

// damaged is a store in which another program overwrote an object.
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

// TestUnreadableIsNoObject checks that an unreadable value is not served as an object,
// is not reported as missing, and keeps its name taken.
func TestUnreadableIsNoObject(t *testing.T) {
	d, _ := newDamaged(t)
	if _, err := d.Get(t.Context(), d.key, store.ReadOptions{}); !errors.Is(err, store.ErrUnreadable) {
		t.Errorf("get: %v", err)
	}
	for _, scope := range []store.Scope{{}, {Namespace: "default"}, {Kind: storetest.Kind(t, "RouteRule")}} {
		list, err := d.List(t.Context(), scope, store.ListOptions{})
		if err != nil || len(list.Items) != 0 || len(list.Unreadable) != 1 || list.Unreadable[0].Key != d.key {
			t.Errorf("list of %+v: %v, %v", scope, list, err)
		}
	}
	if list, err := d.List(t.Context(), store.Scope{Namespace: "other"}, store.ListOptions{}); err != nil || len(list.Unreadable) != 0 {
		t.Errorf("list of another namespace: %v, %v", list, err)
	}
	if _, err := d.Create(t.Context(), storetest.Rule(t, "default", "a", 2)); !errors.Is(err, store.ErrExists) {
		t.Errorf("create: %v", err)
	}
	change := func(*schema.Object) (*schema.Object, error) { t.Error("a part of it is changed"); return nil, nil }
	for _, verb := range []store.Verb{store.OpUpdate, store.OpApply} {
		_, err := d.Txn(t.Context(), []store.Op{{Verb: verb, Key: d.key, Change: change}})
		if !errors.Is(err, store.ErrUnreadable) {
			t.Errorf("%s of a part: %v", verb, err)
		}
	}
}

// TestStoredBytesAreChecked checks that a value that was changed in etcd since it was
// written is not read, even if it is a valid object. A value of an older version
// without a checksum is read.
func TestStoredBytesAreChecked(t *testing.T) {
	client := etcdtest.Start(t).Client()
	s := etcd.New(client, etcd.DefaultPrefix, quiet)
	made, err := s.Create(t.Context(), storetest.Rule(t, "default", "a", 1))
	if err != nil {
		t.Fatal(err)
	}
	stored, err := client.Get(t.Context(), damagedName)
	if err != nil || len(stored.Kvs) != 1 {
		t.Fatal(stored, err)
	}
	value := string(stored.Kvs[0].Value)
	damaged := strings.Replace(value, `"precedence":1`, `"precedence":3`, 1)
	if damaged == value {
		t.Fatalf("stored: %s", value)
	}
	put(t, client, damagedName, damaged)
	if _, err := s.Get(t.Context(), made.Key(), store.ReadOptions{}); !errors.Is(err, store.ErrUnreadable) {
		t.Errorf("with another value: %v", err)
	}
	put(t, client, damagedName, string(made.Encoded()))
	if got, err := s.Get(t.Context(), made.Key(), store.ReadOptions{}); err != nil || !bytes.Equal(got.Encoded(), made.Encoded()) {
		t.Errorf("without a checksum: %v", err)
	}
}

// TestHistoryIsChecked checks that a record that was changed in etcd says nothing about
// the object. A record of an older version does.
func TestHistoryIsChecked(t *testing.T) {
	client := etcdtest.Start(t).Client()
	s := etcd.New(client, etcd.DefaultPrefix, quiet)
	for weight := 1; weight <= 2; weight++ {
		if _, err := s.Txn(t.Context(), []store.Op{{Verb: store.OpApply, Object: storetest.Rule(t, "default", "a", weight)}}); err != nil {
			t.Fatal(err)
		}
	}
	records := etcd.DefaultPrefix + "/history/config.istio.io/routerules/default/a/"
	found, err := client.Get(t.Context(), records, clientv3.WithPrefix(), clientv3.WithSort(clientv3.SortByModRevision, clientv3.SortDescend))
	if err != nil || len(found.Kvs) != 2 {
		t.Fatal(found, err)
	}
	newest := found.Kvs[0]
	text, err := schema.WithoutChecksum(newest.Value)
	if err != nil || bytes.Equal(text, newest.Value) {
		t.Fatalf("a record without a checksum: %s, %v", newest.Value, err)
	}
	key := schema.Key{Kind: "RouteRule", Namespace: "default", Name: "a"}
	lost := func(value string) bool {
		put(t, client, string(newest.Key), value)
		versions, err := s.History(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(versions, func(v store.Version) bool { return v.Lost })
	}
	if lost(string(newest.Value)) || lost(string(text)) {
		t.Error("a good record is not read")
	}
	damaged := strings.Replace(string(newest.Value), `"precedence":1`, `"precedence":3`, 1)
	if damaged == string(newest.Value) || !lost(damaged) {
		t.Errorf("a damaged record is read: %s", damaged)
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

// TestWatchOfUnreadable checks that, whatever is done to a key, a watch delivers what
// readers see: an unreadable object is not there.
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
	var got, readings []string
	for b := range w.Batches() {
		for _, r := range b.Readings {
			readings = append(readings, fmt.Sprintf("%s@%d %t", r.Key.Name, r.Revision-made.Revision(), r.Mended))
		}
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
	want = []string{"a@1 false", "a@2 false", "a@3 true", "a@4 false", "a@5 true", "a@6 false", "a@7 true", "a@8 false", "a@9 true"}
	if diff := cmp.Diff(want, readings); diff != "" {
		t.Errorf("readings (-want +got):\n%s", diff)
	}
}

func remove(t *testing.T, client *clientv3.Client, key string) {
	t.Helper()
	if _, err := client.Delete(t.Context(), key); err != nil {
		t.Fatal(err)
	}
}

// TestUnreadableIsRolledBack checks that a rollback replaces an unreadable value with
// the state of an earlier revision, and deletes it if there was none. It does not touch
// values that were repaired meanwhile.
func TestUnreadableIsRolledBack(t *testing.T) {
	client := etcdtest.Start(t).Client()
	s := etcd.New(client, etcd.DefaultPrefix, quiet)
	made, err := s.Create(t.Context(), storetest.Rule(t, "default", "a", 1))
	if err != nil {
		t.Fatal(err)
	}
	later := storetest.Rule(t, "default", "b", 1)
	if _, err := s.Txn(t.Context(), []store.Op{
		{Verb: store.OpUpdate, Object: storetest.Rule(t, "default", "a", 2)}, {Verb: store.OpCreate, Object: later},
	}); err != nil {
		t.Fatal(err)
	}
	put(t, client, damagedName, "{")
	put(t, client, strings.TrimSuffix(damagedName, "a")+"b", `{"spec":null}`)

	found, err := s.Changes(t.Context(), store.Scope{Namespace: "default"}, made.Revision())
	if err != nil || len(found) != 2 {
		t.Fatal(found, err)
	}
	var ops []store.Op
	for _, d := range found {
		if d.Now != nil || d.Unreadable == nil || d.Unreadable.Why == "" {
			t.Errorf("%s: %+v", d.Key, d)
		}
		op, ok, err := d.Undo()
		if !ok || err != nil {
			t.Fatal(ok, err)
		}
		ops = append(ops, op)
	}
	if _, err := s.Txn(t.Context(), ops); err != nil {
		t.Fatal(err)
	}
	got, err := s.Get(t.Context(), made.Key(), store.ReadOptions{})
	if err != nil || !bytes.Equal(got.SpecJSON(), made.SpecJSON()) {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := s.Get(t.Context(), later.Key(), store.ReadOptions{}); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a value that was not there: %v", err)
	}
	if _, err := s.Txn(t.Context(), ops[:1]); !errors.Is(err, store.ErrConflict) {
		t.Errorf("a mended value: %v", err)
	}
}
