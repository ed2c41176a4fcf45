package etcd_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
	"github.com/pilot-api/pilot-api/store/etcd"
	"github.com/pilot-api/pilot-api/store/etcd/etcdtest"
	"github.com/pilot-api/pilot-api/store/etcd/register"
	"github.com/pilot-api/pilot-api/store/storetest"
)

// TestMigrate checks that the target has everything with its history, in the order of
// time. During the migration a store on the target refuses reads and writes.
func TestMigrate(t *testing.T) {
	source := startEmbedded(t, t.TempDir())
	from := etcd.NewEmbedded(source, etcd.DefaultPrefix, quiet)
	busy(t, from)
	if _, err := from.Txn(t.Context(), many(t, 200)); err != nil {
		t.Fatal(err)
	}
	// What the servers share moves along: tokens and certificates that they issued still count.
	shared := map[string]string{etcd.DefaultPrefix + "/" + register.TokenKey: "a key", etcd.DefaultPrefix + "/" + etcd.AuthorityName: "an authority", etcd.DefaultPrefix + "/" + etcd.RevokedTokensName: "a token"}
	for key, text := range shared {
		if _, err := source.Client().Put(t.Context(), key, text); err != nil {
			t.Fatal(err)
		}
	}
	to := etcdtest.Start(t).Client()
	target := etcd.New(to, etcd.DefaultPrefix, quiet)
	looked := false
	objects, err := etcd.Migration{From: source.Client(), To: to, Prefix: etcd.DefaultPrefix, Progress: func(done, total int) {
		looked = true
		refused(t, target)
	}}.Run(t.Context())
	if err != nil || !looked {
		t.Fatal(err, looked)
	}
	for key, text := range shared {
		if got, err := to.Get(t.Context(), key); err != nil || len(got.Kvs) != 1 || string(got.Kvs[0].Value) != text {
			t.Errorf("%s: %v, %v", key, got, err)
		}
	}
	want := known(t, from, false)
	if diff := cmp.Diff(want, known(t, target, false)); diff != "" {
		t.Error(diff)
	}
	list, err := target.List(t.Context(), store.Scope{}, store.ListOptions{})
	if err != nil || len(list.Items) != objects || len(list.Unreadable) != 0 {
		t.Errorf("%d objects, %d of them cannot be read, %v, want %d", len(list.Items), len(list.Unreadable), err, objects)
	}
	consistent(t, from, target)
	if _, err := target.Changes(t.Context(), store.Scope{}, 1); !errors.Is(err, store.ErrExpired) {
		t.Errorf("changes since before the migration: %v", err)
	}
	if _, err := target.Create(t.Context(), storetest.Rule(t, "default", "after", 1)); err != nil {
		t.Error(err)
	}
}

// many returns creates for one transaction.
func many(t *testing.T, n int) (ops []store.Op) {
	for i := range n {
		ops = append(ops, store.Op{Verb: store.OpCreate, Object: storetest.Rule(t, "many", fmt.Sprintf("rule-%d", i), 1)})
	}
	return ops
}

func refused(t *testing.T, s *etcd.Store) {
	t.Helper()
	key := storetest.Rule(t, "default", "rule-1", 1).Key()
	_, get := s.Get(t.Context(), key, store.ReadOptions{})
	_, list := s.List(t.Context(), store.Scope{}, store.ListOptions{})
	_, history := s.History(t.Context(), key)
	_, revision := s.Revision(t.Context())
	_, create := s.Create(t.Context(), storetest.Rule(t, "default", "early", 1))
	for i, err := range []error{get, list, history, revision, create} {
		if !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("call %d during a migration: %v", i, err)
		}
	}
}

// consistent compares the revisions of two stores: versions exist at the revisions at
// which they began, and the changes since each of them are those of the source.
func consistent(t *testing.T, from, to *etcd.Store) {
	t.Helper()
	for i := range 6 {
		key := storetest.Rule(t, "default", fmt.Sprintf("rule-%d", i), 1).Key()
		old, err1 := from.History(t.Context(), key)
		versions, err2 := to.History(t.Context(), key)
		if err1 != nil || err2 != nil || len(old) != len(versions) {
			t.Fatal(err1, err2)
		}
		for j, v := range versions {
			if v.Object != nil && v.Object.Revision() != v.Revision {
				t.Errorf("%s: version of revision %d says %d", key, v.Revision, v.Object.Revision())
			}
			scope := store.Scope{Kind: storetest.Kind(t, key.Kind), Namespace: key.Namespace, Name: key.Name}
			want, err1 := from.Changes(t.Context(), scope, old[j].Revision)
			got, err2 := to.Changes(t.Context(), scope, v.Revision)
			if diff := cmp.Diff(states(want), states(got)); diff != "" || (err1 == nil) != (err2 == nil) {
				t.Errorf("%s: changes since version %d: %v, %v %s", key, j, err1, err2, diff)
			}
		}
	}
}

func states(list []store.Difference) (texts []string) {
	text := func(o *schema.Object) string {
		if o == nil {
			return "none"
		}
		return string(o.Encoded())
	}
	for _, d := range list {
		texts = append(texts, fmt.Sprint(d.Key, text(d.Then), text(d.Now)))
	}
	return texts
}

// TestMigrateOnceMore checks that a killed migration is done again, that the killed one
// does no harm if it still runs, and that a target with objects is not touched.
func TestMigrateOnceMore(t *testing.T) {
	source := startEmbedded(t, t.TempDir())
	from := etcd.NewEmbedded(source, etcd.DefaultPrefix, quiet)
	busy(t, from)
	to := etcdtest.Start(t).Client()
	migration := etcd.Migration{From: source.Client(), To: to, Prefix: etcd.DefaultPrefix}

	ctx, kill := context.WithCancel(t.Context())
	killed := migration
	killed.Progress = func(done, total int) {
		if done > total/2 {
			kill()
		}
	}
	if _, err := killed.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	refused(t, etcd.New(to, etcd.DefaultPrefix, quiet))
	late := migration
	late.Progress = func(done, total int) {
		if done < total/2 {
			return
		}
		if _, err := migration.Run(t.Context()); err != nil && !errors.Is(err, etcd.ErrNotEmpty) {
			t.Error(err)
		}
	}
	if _, err := late.Run(t.Context()); err == nil {
		t.Error("two migrations at a time are both done")
	}
	target := etcd.New(to, etcd.DefaultPrefix, quiet)
	if diff := cmp.Diff(known(t, from, false), known(t, target, false)); diff != "" {
		t.Error(diff)
	}
	before := everyKey(t, to)
	if _, err := migration.Run(t.Context()); !errors.Is(err, etcd.ErrNotEmpty) {
		t.Errorf("into a store that is there: %v", err)
	}
	if diff := cmp.Diff(before, everyKey(t, to)); diff != "" {
		t.Error(diff)
	}
}

func everyKey(t *testing.T, c *clientv3.Client) (keys []string) {
	t.Helper()
	resp, err := c.Get(t.Context(), "", clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	for _, kv := range resp.Kvs {
		keys = append(keys, fmt.Sprint(string(kv.Key), kv.ModRevision))
	}
	return keys
}

// TestMigrateLargeObjects checks that an etcd with its own limits accepts the largest
// objects with their history.
func TestMigrateLargeObjects(t *testing.T) {
	source := startEmbedded(t, t.TempDir())
	from := etcd.NewEmbedded(source, etcd.DefaultPrefix, quiet)
	for range 2 {
		var ops []store.Op
		for i := range 6 {
			ops = append(ops, store.Op{Verb: store.OpApply, Object: noise(t, fmt.Sprintf("rule-%d", i), 900_000)})
		}
		if _, err := from.Txn(t.Context(), ops); err != nil {
			t.Fatal(err)
		}
	}
	to := etcdtest.Start(t).Client()
	if _, err := (etcd.Migration{From: source.Client(), To: to, Prefix: etcd.DefaultPrefix}).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(known(t, from, false), known(t, etcd.New(to, etcd.DefaultPrefix, quiet), false)); diff != "" {
		t.Error("not as it was")
	}
}

// TestMigrateWhatIsNotKept checks that a server over the target that keeps more records
// than the source did does not claim that there were no others.
func TestMigrateWhatIsNotKept(t *testing.T) {
	from, to := etcdtest.Start(t).Client(), etcdtest.Start(t).Client()
	source := keeping(t, from, 1)
	obj := storetest.Rule(t, "default", "a", 1)
	for range 2 {
		if _, err := source.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
		if _, err := source.Delete(t.Context(), obj.Key(), store.Preconditions{}); err != nil {
			t.Fatal(err)
		}
	}
	settled(t, source)
	if _, err := source.Create(t.Context(), obj); err != nil {
		t.Fatal(err)
	}
	if err := etcd.Sweep(source, t.Context(), time.Now()); err != nil {
		t.Fatal(err)
	}
	if _, err := (etcd.Migration{From: from, To: to, Prefix: "/test"}).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	versions, err := keeping(t, to, 10).History(t.Context(), obj.Key())
	if err != nil {
		t.Fatal(err)
	}
	if o, err := store.VersionAt(versions, obj.Key(), versions[0].Revision-1); !errors.Is(err, store.ErrExpired) {
		t.Errorf("before the oldest record: %v, %v", o, err)
	}
}
