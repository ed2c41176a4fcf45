package etcd_test

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
	"github.com/pilot-api/pilot-api/store/etcd"
	"github.com/pilot-api/pilot-api/store/etcd/embedded"
	"github.com/pilot-api/pilot-api/store/etcd/etcdtest"
	"github.com/pilot-api/pilot-api/store/storetest"
)

// noise returns a rule that cannot be compressed.
func noise(t *testing.T, name string, size int) *schema.Object {
	t.Helper()
	random := make([]byte, size*3/4)
	_, _ = rand.Read(random)
	obj := storetest.Rule(t, "default", name, 1)
	meta := obj.Meta
	meta.Annotations = map[string]string{"payload": base64.StdEncoding.EncodeToString(random)}
	obj, err := obj.WithMeta(meta)
	if err != nil {
		t.Fatal(err)
	}
	return obj
}

// TestLargeStates checks that a state too large to be kept beside the next one is
// recorded as lost, and that the write itself fits etcd's own limit of a request.
func TestLargeStates(t *testing.T) {
	s := etcd.New(etcdtest.Start(t).Client(), etcd.DefaultPrefix, quiet)
	for size, kept := range map[int]bool{1_000: true, 100_000: true, 1_000_000: false} {
		name := fmt.Sprintf("rule-%d", size)
		made, err := s.Create(t.Context(), noise(t, name, size))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Update(t.Context(), noise(t, name, size)); err != nil {
			t.Fatalf("%d bytes: %v", size, err)
		}
		versions, err := s.History(t.Context(), made.Key())
		if err != nil {
			t.Fatal(err)
		}
		old := versions[1]
		if old.Lost == kept || kept != (old.Object != nil) {
			t.Errorf("%d bytes: lost %t, object %t", size, old.Lost, old.Object != nil)
		}
		_, err = s.Changes(t.Context(), store.Scope{}, made.Revision())
		if !kept && !errors.Is(err, store.ErrExpired) {
			t.Errorf("%d bytes: since: %v", size, err)
		}
	}
}

// TestDamagedRecords checks that a record that cannot be read hides no other.
func TestDamagedRecords(t *testing.T) {
	client := etcdtest.Start(t).Client()
	s := etcd.New(client, "/test", quiet)
	made, err := s.Create(t.Context(), storetest.Rule(t, "default", "a", 1))
	if err != nil {
		t.Fatal(err)
	}
	const prefix = "/test/history/config.istio.io/routerules/default/a/"
	for _, junk := range []string{"", "junk", `{"revision":3,"before":{}}`, `{"revision":3,"packed":"AAAA"}`} {
		if _, err := client.Put(t.Context(), prefix+"junk", junk); err != nil {
			t.Fatal(err)
		}
		versions, err := s.History(t.Context(), made.Key())
		if err != nil || len(versions) != 2 || versions[0].Object == nil || !versions[1].Lost {
			t.Errorf("%q: %+v, %v", junk, versions, err)
		}
		if _, err := s.Changes(t.Context(), store.Scope{}, made.Revision()); !errors.Is(err, store.ErrExpired) {
			t.Errorf("%q: since: %v", junk, err)
		}
	}
}

func records(t *testing.T, s *etcd.Store, name string) int {
	t.Helper()
	versions, err := s.History(t.Context(), storetest.Rule(t, "default", name, 1).Key())
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		t.Fatal(err)
	}
	n := 0
	for _, v := range versions {
		if v.Change != nil {
			n++
		}
	}
	return n
}

// TestSweep checks that a server deletes the surplus that another process left, and
// that the records of deleted objects are dropped after a month. Reading from before
// that gives an error.
func TestSweep(t *testing.T) {
	client := etcdtest.Start(t).Client()
	left := etcd.New(client, "/test", quiet)
	for i := range 15 {
		for _, name := range []string{"here", "gone"} {
			var err error
			if rule := storetest.Rule(t, "default", name, i); i == 0 {
				_, err = left.Create(t.Context(), rule)
			} else {
				_, err = left.Update(t.Context(), rule)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	gone := storetest.Rule(t, "default", "gone", 1)
	if _, err := left.Delete(t.Context(), gone.Key(), store.Preconditions{}); err != nil {
		t.Fatal(err)
	}
	before, err := left.Revision(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	again, err := left.Create(t.Context(), storetest.Rule(t, "default", "again", 1))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := left.Delete(t.Context(), again.Key(), store.Preconditions{}); err != nil {
		t.Fatal(err)
	}

	s := etcd.New(client, "/test", quiet)
	s.Limit(etcd.Limits{History: 10, Ops: 5})
	if err := etcd.Sweep(s, t.Context(), time.Now()); err != nil {
		t.Fatal(err)
	}
	if here, gone := records(t, s, "here"), records(t, s, "gone"); here != 10 || gone != 10 {
		t.Errorf("after a sweep %d and %d records", here, gone)
	}
	if err := etcd.Sweep(s, t.Context(), time.Now().Add(31*24*time.Hour)); err != nil {
		t.Fatal(err)
	}
	if here, gone := records(t, s, "here"), records(t, s, "gone"); here != 10 || gone != 0 {
		t.Errorf("after a month %d and %d records", here, gone)
	}
	if _, err := s.Create(t.Context(), storetest.Rule(t, "default", "again", 1)); err != nil {
		t.Fatal(err)
	}
	if d, err := s.Changes(t.Context(), store.Scope{}, before); !errors.Is(err, store.ErrExpired) {
		t.Errorf("what was there between is forgotten: %+v, %v", d, err)
	}
}

// TestForgottenForGood checks that, once an object and its records are gone, Changes
// does not claim that nothing changed. Present objects show their changes by
// themselves.
func TestForgottenForGood(t *testing.T) {
	s := etcd.New(etcdtest.Start(t).Client(), "/test", quiet)
	gone, here := storetest.Rule(t, "default", "gone", 1), storetest.Rule(t, "default", "here", 1)
	if _, err := s.Create(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	made, err := s.Create(t.Context(), here)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Delete(t.Context(), gone.Key(), store.Preconditions{}); err != nil {
		t.Fatal(err)
	}
	if err := etcd.Sweep(s, t.Context(), time.Now().Add(31*24*time.Hour)); err != nil {
		t.Fatal(err)
	}
	for _, scope := range []store.Scope{
		{},
		{Namespace: "default"},
		{Kind: gone.Kind},
		{Kind: gone.Kind, Namespace: "default", Name: "gone"},
	} {
		if d, err := s.Changes(t.Context(), scope, made.Revision()); !errors.Is(err, store.ErrExpired) {
			t.Errorf("%+v: %+v, %v", scope, d, err)
		}
	}
	one := store.Scope{Kind: here.Kind, Namespace: "default", Name: "here"}
	if d, err := s.Changes(t.Context(), one, made.Revision()); len(d) > 0 || err != nil {
		t.Errorf("what has not changed: %+v, %v", d, err)
	}
}

// TestWithoutRecords checks that Changes does not claim that nothing changed while no
// records were kept. Later changes are known again.
func TestWithoutRecords(t *testing.T) {
	client := etcdtest.Start(t).Client()
	start := func(history int) *etcd.Store {
		s := etcd.New(client, "/test", quiet)
		s.Limit(etcd.Limits{History: history, Ops: 5})
		return s
	}
	updated, deleted := storetest.Rule(t, "default", "updated", 1), storetest.Rule(t, "default", "deleted", 1)
	s := start(10)
	made, err := s.Txn(t.Context(), []store.Op{{Verb: store.OpCreate, Object: updated}, {Verb: store.OpCreate, Object: deleted}})
	if err != nil {
		t.Fatal(err)
	}
	before := made[0].Revision()
	s = start(0)
	if d, err := s.Changes(t.Context(), store.Scope{}, before); len(d) > 0 || err != nil {
		t.Errorf("nothing has changed: %+v, %v", d, err)
	}
	if _, err := s.Delete(t.Context(), deleted.Key(), store.Preconditions{}); err != nil {
		t.Fatal(err)
	}
	between, err := s.Update(t.Context(), storetest.Rule(t, "default", "updated", 2))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []*etcd.Store{s, start(10)} {
		for _, obj := range made {
			one := store.Scope{Kind: obj.Kind, Namespace: "default", Name: obj.Meta.Name}
			for _, scope := range []store.Scope{{}, {Namespace: "default"}, one} {
				if d, err := s.Changes(t.Context(), scope, before); !errors.Is(err, store.ErrExpired) {
					t.Errorf("%+v: %+v, %v", scope, d, err)
				}
			}
		}
	}
	s = start(10)
	if _, err := s.Update(t.Context(), storetest.Rule(t, "default", "updated", 3)); err != nil {
		t.Fatal(err)
	}
	if d, err := s.Changes(t.Context(), store.Scope{}, between.Revision()); err != nil || len(d) != 1 || d[0].Then == nil {
		t.Errorf("with records again: %+v, %v", d, err)
	}
}

// TestRecordsAreGivenUp checks that a server without history deletes the remaining
// records, and that a later server with history does not conclude that nothing changed.
func TestRecordsAreGivenUp(t *testing.T) {
	s := etcd.New(etcdtest.Start(t).Client(), "/test", quiet)
	obj := storetest.Rule(t, "default", "a", 1)
	made, err := s.Create(t.Context(), obj)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Delete(t.Context(), obj.Key(), store.Preconditions{}); err != nil {
		t.Fatal(err)
	}
	s.Limit(etcd.Limits{History: 0, Ops: 5})
	if err := etcd.Sweep(s, t.Context(), time.Now()); err != nil {
		t.Fatal(err)
	}
	s.Limit(etcd.DefaultLimits)
	if d, err := s.Changes(t.Context(), store.Scope{}, made.Revision()); !errors.Is(err, store.ErrExpired) {
		t.Errorf("%+v, %v", d, err)
	}
}

// TestHistoryGivesWay checks that records fill only a part of the store, so that the
// present state always has room.
func TestHistoryGivesWay(t *testing.T) {
	outside.Slow(t)
	e, err := embedded.Start(t.Context(), embedded.Options{Dir: t.TempDir(), Log: quiet, QuotaBytes: 16 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	s := etcd.NewEmbedded(e, etcd.DefaultPrefix, quiet)
	for i := range 12 {
		for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
			rule := noise(t, name, 250_000)
			write := s.Update
			if i == 0 {
				write = s.Create
			}
			if _, err := write(t.Context(), rule); err != nil {
				t.Fatalf("round %d: %v", i, err)
			}
		}
	}
	if usage := e.Usage(); usage.Live > usage.Quota/10*9 {
		t.Errorf("%d of %d bytes are live", usage.Live, usage.Quota)
	}
}

// TestAuthorsAreBounded checks that the author of a request cannot fill the store.
func TestAuthorsAreBounded(t *testing.T) {
	long := strings.Repeat("x", 10_000)
	ctx := store.WithAuthor(context.Background(), store.Author{User: long, UserAgent: long})
	if a := store.AuthorOf(ctx); len(a.User) > store.MaxAuthorBytes || len(a.UserAgent) > store.MaxAuthorBytes {
		t.Errorf("%d and %d bytes", len(a.User), len(a.UserAgent))
	}
}

// TestMadeAgain checks that an object that is repeatedly deleted and created has as
// many records as one that stays, and that a create looks nothing up.
func TestMadeAgain(t *testing.T) {
	client := etcdtest.Start(t).Client()
	s := etcd.New(client, "/test", quiet)
	obj := storetest.Rule(t, "default", "a", 1)
	for range etcd.DefaultLimits.History {
		if _, err := s.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
		if err := etcd.Settle(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Delete(t.Context(), obj.Key(), store.Preconditions{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := etcd.Settle(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Create(t.Context(), obj); err != nil {
		t.Fatal(err)
	}
	if got := records(t, s, "a"); got != etcd.DefaultLimits.History {
		t.Errorf("%d records are told, want %d", got, etcd.DefaultLimits.History)
	}
	kept, err := client.Get(t.Context(), "/test/history/", clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil || kept.Count > int64(etcd.DefaultLimits.History)+1 {
		t.Errorf("%d records are kept (%v)", kept.Count, err)
	}
}
