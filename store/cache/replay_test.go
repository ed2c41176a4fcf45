package cache_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
	"github.com/pilot-api/pilot-api/store/cache"
	"github.com/pilot-api/pilot-api/store/etcd"
	"github.com/pilot-api/pilot-api/store/etcd/etcdtest"
	"github.com/pilot-api/pilot-api/store/memory"
	"github.com/pilot-api/pilot-api/store/storetest"
)

// watched counts the watches of a source, and refuses some.
type watched struct {
	*memory.Store
	watches atomic.Int64
	refuse  func(n int64) error // nil for none
}

func (s *watched) Watch(ctx context.Context, scope store.Scope, after int64) (store.Watcher, error) {
	n := s.watches.Add(1)
	if s.refuse != nil {
		if err := s.refuse(n); err != nil {
			return nil, err
		}
	}
	return s.Store.Watch(ctx, scope, after)
}

// change makes many changes: objects that come, change several times and go.
func change(t *testing.T, s store.Interface, revisions int) (begin int64) {
	t.Helper()
	begin = create(t, t.Context(), s, "first").Revision()
	for i := range revisions {
		name := fmt.Sprintf("rule-%d", i/5)
		switch {
		case i%5 == 0:
			create(t, t.Context(), s, name)
		case i%10 == 4:
			if _, err := s.Delete(t.Context(), storetest.Rule(t, "default", name, 1).Key(), store.Preconditions{}); err != nil {
				t.Fatal(err)
			}
		default:
			update(t, t.Context(), s, name, i)
		}
	}
	return begin
}

// sameAsSource compares the copy, and the changes since a revision, with those of the source.
func sameAsSource(t *testing.T, c *cache.Cache, source store.Reader, since int64) {
	t.Helper()
	ctx := testContext(t)
	if err := c.WaitForSync(ctx); err != nil {
		t.Fatal(err)
	}
	newest, err := source.Revision(ctx)
	if err != nil {
		t.Fatal(err)
	}
	read := func(s store.Reader) (out []string) {
		list, err := s.List(ctx, store.Scope{}, store.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range list.Items {
			out = append(out, describe(o))
		}
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		w, err := s.Watch(ctx, store.Scope{}, since)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.RequestProgress(ctx); err != nil {
			t.Fatal(err)
		}
		for b := range w.Batches() {
			for _, ev := range b.Events {
				out = append(out, string(ev.Type)+" "+describe(ev.Object))
			}
			if b.Revision >= newest {
				return out
			}
		}
		t.Fatal(w.Err())
		return nil
	}
	want, got := read(source), read(c)
	if len(want) != len(got) {
		t.Fatalf("%d objects and changes, want %d", len(got), len(want))
	}
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("%d: %s, want %s", i, got[i], want[i])
		}
	}
}

func describe(o *schema.Object) string { return o.Key().String() + " " + o.Meta.ResourceVersion }

// TestReplay: a cache that starts over a long past has the same objects and changes as its
// source, whatever the source refuses on the way.
func TestReplay(t *testing.T) {
	const revisions = 3500
	for name, refuse := range map[string]func(n int64) error{
		"nothing is refused": nil,
		"one watch is refused": func(n int64) error {
			if n == 3 {
				return &store.Error{Kind: store.ErrUnavailable, Detail: "for a test"}
			}
			return nil
		},
		"the past is compacted meanwhile": func(n int64) error {
			if n == 4 {
				return &store.Error{Kind: store.ErrExpired, Detail: "for a test"}
			}
			return nil
		},
		"no further watch is answered at first": func(n int64) error {
			if n >= 3 && n < 12 {
				return &store.Error{Kind: store.ErrUnavailable, Detail: "for a test"}
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			source := &watched{Store: memory.New(), refuse: refuse}
			begin := change(t, source.Store, revisions)
			sameAsSource(t, start(t, source, cache.Options{Window: 2 * revisions}), source.Store, begin)
			if n := source.watches.Load(); n < 3 {
				t.Errorf("%d watches read the past", n)
			}
		})
	}
}

// TestReplayOfEtcd is TestReplay over an etcd.
func TestReplayOfEtcd(t *testing.T) {
	s := etcd.New(etcdtest.Start(t).Client(), "/replay", quiet)
	begin := change(t, s, 2500)
	sameAsSource(t, start(t, s, cache.Options{Window: 5000}), s, begin)
}
