package cache_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
	"github.com/pilot-api/pilot-api/store/cache"
	"github.com/pilot-api/pilot-api/store/etcd"
	"github.com/pilot-api/pilot-api/store/etcd/etcdtest"
	"github.com/pilot-api/pilot-api/store/storetest"
)

// cacheOver returns a cache that follows a store until the test ends.
func cacheOver(t testing.TB, s store.Reader) *cache.Cache {
	t.Helper()
	c := cache.New(s, cache.Options{Log: slog.New(slog.DiscardHandler)})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-ended })
	if err := c.WaitForSync(t.Context()); err != nil {
		t.Fatal(err)
	}
	return c
}

func statusOf(t testing.TB, running int) *schema.StatusText {
	t.Helper()
	status := schema.Status{Programmed: schema.Programmed{Running: running}}
	text, err := json.Marshal(status)
	if err != nil {
		t.Fatal(err)
	}
	return &schema.StatusText{Status: status, JSON: text}
}

// textOf returns what readers see of an object.
func textOf(o *schema.Object) string {
	if s := o.StatusText(); s != nil {
		return string(o.JSON()) + string(s.JSON)
	}
	return string(o.JSON())
}

func textsOf(objs []*schema.Object) (all []string) {
	for _, o := range objs {
		all = append(all, textOf(o))
	}
	return all
}

// TestStatusesAreSharedState checks that a cache which followed all changes and one that was
// started after them show the same: every list of the past, and every event after any
// revision. Versions of an object never repeat or go back, an event is a list's difference,
// and proxies and handlers see only writes.
func TestStatusesAreSharedState(t *testing.T) {
	client := etcdtest.Start(t).Client()
	s := etcd.New(client, etcd.DefaultPrefix, slog.New(slog.DiscardHandler))
	if _, err := s.Create(t.Context(), storetest.Rule(t, "default", "first", 1)); err != nil {
		t.Fatal(err)
	}
	if err := s.KeepStatuses(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	old := cacheOver(t, s)
	began, err := old.CatchUp(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w, err := s.StatusWriter(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(3, 4))
	known := map[string]*schema.Object{}
	for round := range 200 {
		name := fmt.Sprint("rule-", random.IntN(6))
		switch {
		case random.IntN(2) == 0:
			var moved []store.StoredStatus
			for _, o := range known {
				if random.IntN(2) == 0 { // Some are about a state that is gone.
					moved = append(moved, store.StoredStatus{Key: o.Key(), Of: o.Revision() - random.Int64N(2), StatusText: statusOf(t, round)})
				}
			}
			err = w.Write(t.Context(), moved, nil)
		case known[name] != nil && random.IntN(4) == 0:
			_, err = s.Delete(t.Context(), known[name].Key(), store.Preconditions{})
			delete(known, name)
		default:
			known[name], err = store.Single(s.Txn(t.Context(), []store.Op{{Verb: store.OpApply, Object: storetest.Rule(t, "default", name, 1+round)}}))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	end, err := old.CatchUp(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	young := cacheOver(t, s)
	var before map[schema.Key]string
	versions := map[schema.Key]int64{}
	for at := began; at <= end; at++ {
		list, err := old.List(t.Context(), store.Scope{}, store.ListOptions{Exact: at})
		if err != nil {
			t.Fatal(err)
		}
		again, err := young.List(t.Context(), store.Scope{}, store.ListOptions{Exact: at})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(textsOf(list.Items), textsOf(again.Items)); diff != "" {
			t.Fatalf("lists at %d (-followed +started later):\n%s", at, diff)
		}
		told, err := old.Repeat(store.Scope{}, at)
		if err != nil && at > began {
			t.Fatal(err)
		}
		if later, err := young.Repeat(store.Scope{}, at); at > began && (err != nil || len(later) != len(told)) {
			t.Fatalf("events at %d: %v and %v, %v", at, told, later, err)
		}
		now := map[schema.Key]string{}
		for _, o := range list.Items {
			now[o.Key()] = textOf(o)
		}
		for _, ev := range told {
			key, version := ev.Object.Key(), ev.Object.Revision()
			if version != at || version <= versions[key] {
				t.Errorf("at %d came version %d of %s, after %d", at, version, key, versions[key])
			}
			if versions[key] = version; before != nil {
				before[key] = textOf(ev.Object)
				if ev.Type == store.Deleted {
					delete(before, key)
				}
			}
		}
		if diff := cmp.Diff(before, now); before != nil && diff != "" {
			t.Fatalf("events at %d lead to another state (-events +list):\n%s", at, diff)
		}
		before = now
	}
	changes, _, ok := old.Since(began)
	if !ok {
		t.Fatal("the changes are not known")
	}
	for _, c := range changes {
		if c.After != nil && (c.After.StatusText() != nil || c.After != c.After.WithoutStatus()) {
			t.Errorf("proxies see the status of %s", c.After.Key())
		}
	}
	listed, err := s.List(t.Context(), store.Scope{}, store.ListOptions{Exact: end})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []*cache.Cache{old, young} {
		objs, _, _ := c.Snapshot()
		if diff := cmp.Diff(textsOf(listed.Items), textsOf(objs)); diff != "" {
			t.Errorf("a snapshot differs from the store (-store +snapshot):\n%s", diff)
		}
	}
}

// TestStatusesBeginAndEnd checks that watches end when the store begins or ends to keep
// statuses, because all versions may be others then, and that lists follow.
func TestStatusesBeginAndEnd(t *testing.T) {
	client := etcdtest.Start(t).Client()
	s := etcd.New(client, etcd.DefaultPrefix, slog.New(slog.DiscardHandler))
	made, err := s.Create(t.Context(), storetest.Rule(t, "default", "a", 1))
	if err != nil {
		t.Fatal(err)
	}
	c := cacheOver(t, s)
	for _, keep := range []bool{true, false, true} {
		at, err := c.CatchUp(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		w, err := c.Watch(t.Context(), store.Scope{}, at)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.KeepStatuses(t.Context(), keep); err != nil {
			t.Fatal(err)
		}
		for range w.Batches() {
			t.Error("a change")
		}
		if !errors.Is(w.Err(), store.ErrExpired) {
			t.Errorf("the watch ended with %v", w.Err())
		}
		if c.ShowsStatuses() != keep {
			t.Errorf("it shows statuses: %t", !keep)
		}
		want := made.Revision()
		if keep {
			to, err := s.StatusWriter(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if err := to.Write(t.Context(), []store.StoredStatus{{Key: made.Key(), Of: made.Revision(), StatusText: statusOf(t, 1)}}, nil); err != nil {
				t.Fatal(err)
			}
			if want, err = c.CatchUp(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		for _, c := range []*cache.Cache{c, cacheOver(t, s)} {
			got, err := c.Get(t.Context(), made.Key(), store.ReadOptions{})
			if err != nil || got.Revision() != want || (got.StatusText() != nil) != keep {
				t.Errorf("with statuses %t it reads %s, %v; want version %d", keep, textOf(got), err, want)
			}
		}
	}
}

// BenchmarkStatusMemory measures the memory of a status and a second version for each of
// 10,000 objects.
func BenchmarkStatusMemory(b *testing.B) {
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	var plain, with []*schema.Object
	for i := range 10_000 {
		plain = append(plain, storetest.Rule(b, "default", fmt.Sprint("rule-", i), 1).AtRevision(int64(i+1)))
	}
	for b.Loop() {
		with = nil
		before := heap()
		for i, o := range plain {
			with = append(with, o.WithStatus(int64(100_000+i), statusOf(b, i%7)))
		}
		b.ReportMetric(float64(heap()-before)/float64(len(plain)), "bytes/object")
	}
	runtime.KeepAlive(with)
}
