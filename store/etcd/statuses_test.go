package etcd_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
	"github.com/pilot-api/pilot-api/store/etcd"
	"github.com/pilot-api/pilot-api/store/etcd/etcdtest"
	"github.com/pilot-api/pilot-api/store/storetest"
)

// keepingStatuses returns a store that keeps statuses, over an etcd with the limits of its defaults.
func keepingStatuses(t testing.TB) (*etcd.Store, *clientv3.Client) {
	t.Helper()
	client := etcdtest.Start(t).Client()
	s := etcd.New(client, etcd.DefaultPrefix, slog.New(slog.DiscardHandler))
	if err := s.KeepStatuses(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	return s, client
}

// statusWriter returns a writer of statuses, which replaces earlier ones.
func statusWriter(t testing.TB, s *etcd.Store) *etcd.StatusWriter {
	t.Helper()
	w, err := s.StatusWriter(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func statusText(t testing.TB, running int, message string) *schema.StatusText {
	t.Helper()
	status := schema.Status{Programmed: schema.Programmed{Proxies: 100, Running: running}}
	for _, kind := range []string{schema.ConditionAccepted, schema.ConditionResolved, schema.ConditionProgrammed} {
		status.Conditions = append(status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: kind, Message: message})
	}
	text, err := json.Marshal(status)
	if err != nil {
		t.Fatal(err)
	}
	return &schema.StatusText{Status: status, JSON: text}
}

// stored returns the statuses at a revision as text.
func stored(t *testing.T, s *etcd.Store, revision int64) map[string]string {
	t.Helper()
	kept, all, err := s.Statuses(t.Context(), revision)
	if err != nil || !kept {
		t.Fatalf("at %d: %t, %v", revision, kept, err)
	}
	text := map[string]string{}
	for _, one := range all {
		text[one.Key.Name] = fmt.Sprintf("of %d at %d: %s", one.Of, one.Revision, one.JSON)
	}
	return text
}

// TestStatusRevisions checks that a watch has every status revision once and at its place
// among the changes, that the pages have the sum of them at every revision, and that a new
// writer goes on where the last one ended.
func TestStatusRevisions(t *testing.T) {
	s, _ := keepingStatuses(t)
	began, err := s.Revision(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	all, err := s.Watch(t.Context(), store.Scope{}, began)
	if err != nil {
		t.Fatal(err)
	}
	var keys []schema.Key
	for i := range 300 {
		keys = append(keys, storetest.Rule(t, "default", fmt.Sprintf("rule-%d", i), 1).Key())
	}
	var w *etcd.StatusWriter
	want := map[string]string{}
	at := map[int64]map[string]string{}
	for round := range 12 {
		if round%4 == 0 {
			if w, err = s.StatusWriter(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := s.Create(t.Context(), storetest.Rule(t, "default", fmt.Sprintf("other-%d", round), 1)); err != nil {
			t.Fatal(err)
		}
		var moved []store.StoredStatus
		for i, key := range keys {
			if round == 0 || i%(2+round) == 0 {
				moved = append(moved, store.StoredStatus{Key: key, Of: int64(1 + round), StatusText: statusText(t, i, fmt.Sprint(round))})
			}
		}
		var gone []schema.Key
		if round > 5 {
			gone = keys[:10]
			keys = keys[10:]
			moved = slices.DeleteFunc(moved, func(one store.StoredStatus) bool { return slices.Contains(gone, one.Key) })
		}
		if err := w.Write(t.Context(), moved, gone); err != nil {
			t.Fatal(err)
		}
		revision, err := s.Revision(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range moved {
			want[one.Key.Name] = fmt.Sprintf("of %d at %d: %s", one.Of, revision, one.JSON)
		}
		for _, key := range gone {
			delete(want, key.Name)
		}
		at[revision] = maps.Clone(want)
	}
	for revision, want := range at {
		if diff := cmp.Diff(want, stored(t, s, revision)); diff != "" {
			t.Fatalf("pages at %d (-want +got):\n%s", revision, diff)
		}
	}
	known := map[string]string{}
	for key, one := range w.Known() {
		known[key.Name] = fmt.Sprintf("of %d at %d: %s", one.Of, one.Revision, one.JSON)
	}
	if diff := cmp.Diff(want, known); diff != "" {
		t.Errorf("known to the writer (-want +got):\n%s", diff)
	}

	told, last := map[string]string{}, began
	for len(at) > 0 {
		b := <-all.Batches()
		if b.Revision <= last {
			t.Fatalf("a batch of revision %d after %d", b.Revision, last)
		}
		last = b.Revision
		if b.Statuses == nil {
			continue
		}
		if len(b.Events) > 0 || !b.Statuses.Kept {
			t.Fatalf("not a status revision alone: %+v", b)
		}
		for _, one := range b.Statuses.Moved {
			if one.Revision != b.Revision {
				t.Fatalf("at %d moved a status of %d", b.Revision, one.Revision)
			}
			told[one.Key.Name] = fmt.Sprintf("of %d at %d: %s", one.Of, one.Revision, one.JSON)
		}
		for name, text := range at[b.Revision] {
			if told[name] != text {
				t.Fatalf("%s at %d: told %s, want %s", name, b.Revision, told[name], text)
			}
		}
		delete(at, b.Revision)
	}
}

// TestManyStatusesMove checks that any number of statuses, of any allowed length, fits into
// transactions of an etcd with its defaults, also if short ones grow on their pages.
func TestManyStatusesMove(t *testing.T) {
	s, _ := keepingStatuses(t)
	for _, tc := range []struct {
		name           string
		objects, bytes int
	}{{"rule", 15_000, 10}, {"grown", 600, 10}, {"grown", 600, store.MaxStoredStatus - 600}} {
		w := statusWriter(t, s)
		var moved []store.StoredStatus
		for i := range tc.objects {
			message := []byte(fmt.Sprint(i))
			for n := uint32(i); len(message) < tc.bytes/3; { // It does not compress.
				n = n*1664525 + 1013904223
				message = append(message, '!'+byte(n>>24)%90)
			}
			message = bytes.Map(func(r rune) rune { // JSON needs more bytes for these.
				if strings.ContainsRune(`"\\<>&`, r) {
					return 'x'
				}
				return r
			}, message)
			key := storetest.Rule(t, "default", fmt.Sprintf("%s-%d", tc.name, i), 1).Key()
			moved = append(moved, store.StoredStatus{Key: key, Of: 1, StatusText: statusText(t, i, string(message))})
		}
		if n := len(moved[0].JSON); n > store.MaxStoredStatus {
			t.Fatalf("a status of %d bytes", n)
		}
		if err := w.Write(t.Context(), moved, nil); err != nil {
			t.Fatal(err)
		}
		again := statusWriter(t, s)
		known := again.Known()
		for _, one := range moved {
			if got := known[one.Key]; got.StatusText == nil || string(got.JSON) != string(one.JSON) {
				t.Fatalf("%s: %s is %+v", tc.name, one.Key, got)
			}
		}
	}
}

// TestStatusesAreOfOneWriter checks that nothing is written once the conditions of a writer
// do not hold, or the store keeps no statuses; that the end removes all statuses; and that
// watches learn of it.
func TestStatusesAreOfOneWriter(t *testing.T) {
	s, client := keepingStatuses(t)
	if _, err := client.Put(t.Context(), "/leader", "a"); err != nil {
		t.Fatal(err)
	}
	one := []store.StoredStatus{{Key: storetest.Rule(t, "default", "a", 1).Key(), Of: 1, StatusText: statusText(t, 1, "")}}
	first, err := s.StatusWriter(t.Context(), clientv3.Compare(clientv3.Value("/leader"), "=", "a"))
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Write(t.Context(), one, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Put(t.Context(), "/leader", "b"); err != nil {
		t.Fatal(err)
	}
	if err := first.Write(t.Context(), one, nil); !errors.Is(err, etcd.ErrStatusesLost) {
		t.Errorf("without the lead: %v", err)
	}
	second := statusWriter(t, s)
	before, err := s.Revision(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w, err := s.Watch(t.Context(), store.Scope{}, before)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := s.KeepStatuses(t.Context(), false); err != nil {
			t.Fatal(err)
		}
	}
	if b := <-w.Batches(); b.Statuses == nil || b.Statuses.Kept {
		t.Errorf("at the end: %+v", b)
	}
	if err := second.Write(t.Context(), one, nil); !errors.Is(err, etcd.ErrStatusesLost) {
		t.Errorf("after the end: %v", err)
	}
	if _, err := s.StatusWriter(t.Context()); !errors.Is(err, etcd.ErrStatusesLost) {
		t.Errorf("a writer after the end: %v", err)
	}
	left, err := client.Get(t.Context(), etcd.DefaultPrefix+"/status", clientv3.WithPrefix())
	if err != nil || len(left.Kvs) > 0 {
		t.Errorf("left is %v, %v", left, err)
	}
	if kept, all, err := s.Statuses(t.Context(), before); !kept || len(all) != 1 || err != nil {
		t.Errorf("before the end: %t, %v, %v", kept, all, err)
	}
}

// TestDamagedStatuses checks that a value which cannot be read has no statuses, and that
// the watch goes on.
func TestDamagedStatuses(t *testing.T) {
	s, client := keepingStatuses(t)
	before, err := s.Revision(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w, err := s.Watch(t.Context(), store.Scope{}, before)
	if err != nil {
		t.Fatal(err)
	}
	for _, value := range []string{"", "{}", "\x1f\x8b"} {
		_, err := client.Txn(t.Context()).Then(
			clientv3.OpPut(etcd.DefaultPrefix+"/objects-statuses", value),
			clientv3.OpPut(etcd.DefaultPrefix+"/status-pages/0", value),
			clientv3.OpPut(etcd.DefaultPrefix+"/objects", "")).Commit()
		if err != nil {
			t.Fatal(err)
		}
		if b := <-w.Batches(); b.Statuses == nil || !b.Statuses.Kept || len(b.Statuses.Moved) > 0 {
			t.Errorf("of %q: %+v", value, b)
		}
	}
	if _, err := s.StatusWriter(t.Context()); err != nil {
		t.Errorf("a writer: %v", err)
	}
}

// TestMigrationKeepsKeepingStatuses checks that a store that keeps statuses does so after a
// migration, without those of the old clock.
func TestMigrationKeepsKeepingStatuses(t *testing.T) {
	s, from := keepingStatuses(t)
	made, err := s.Create(t.Context(), storetest.Rule(t, "default", "a", 1))
	if err != nil {
		t.Fatal(err)
	}
	w := statusWriter(t, s)
	if err := w.Write(t.Context(), []store.StoredStatus{{Key: made.Key(), Of: made.Revision(), StatusText: statusText(t, 1, "")}}, nil); err != nil {
		t.Fatal(err)
	}
	to := etcdtest.Start(t).Client()
	if _, err := (etcd.Migration{From: from, To: to, Prefix: etcd.DefaultPrefix}).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	moved := etcd.New(to, etcd.DefaultPrefix, slog.New(slog.DiscardHandler))
	revision, err := moved.Revision(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if kept, all, err := moved.Statuses(t.Context(), revision); !kept || len(all) > 0 || err != nil {
		t.Errorf("after the migration: %t, %v, %v", kept, all, err)
	}
}

// BenchmarkStatusRevision measures one step in which statuses of 5,000 objects change, over a
// socket and without sync: all of them, as many as the recorder writes in a second of a long
// storm, and one.
func BenchmarkStatusRevision(b *testing.B) {
	s, client := keepingStatuses(b)
	w := statusWriter(b, s)
	const objects = 5_000
	var texts []*schema.StatusText
	for i := range 64 {
		texts = append(texts, statusText(b, i, strings.Repeat("99 of 100 proxies run it; ", 2)))
	}
	var moved []store.StoredStatus
	for i := range objects {
		key := storetest.Rule(b, fmt.Sprintf("team-%02d", i/50), fmt.Sprintf("rule-%04d", i), 1).Key()
		moved = append(moved, store.StoredStatus{Key: key, Of: int64(i), StatusText: texts[i%len(texts)]})
	}
	if err := w.Write(b.Context(), moved, nil); err != nil {
		b.Fatal(err)
	}
	for _, n := range []int{objects, 83, 1} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			began, err := s.Revision(b.Context())
			if err != nil {
				b.Fatal(err)
			}
			rounds, last := 0, began
			for b.Loop() {
				if last, err = s.Revision(b.Context()); err != nil {
					b.Fatal(err)
				}
				at := rounds * n % (objects - n + 1)
				rounds++
				step := slices.Clone(moved[at : at+n])
				for i := range step {
					step[i].StatusText = texts[(rounds+i)%len(texts)]
				}
				if err := w.Write(b.Context(), step, nil); err != nil {
					b.Fatal(err)
				}
			}
			after, err := client.Get(b.Context(), etcd.DefaultPrefix, clientv3.WithPrefix(), clientv3.WithMinModRev(last+1))
			if err != nil {
				b.Fatal(err)
			}
			size := 0
			for _, kv := range after.Kvs {
				size += len(kv.Key) + len(kv.Value)
			}
			b.ReportMetric(float64(after.Header.Revision-began)/float64(rounds), "revisions/op")
			b.ReportMetric(float64(size), "written-bytes/op")
		})
	}
}
