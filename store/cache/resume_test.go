package cache_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
	"github.com/pilot-api/pilot-api/store/cache"
	"github.com/pilot-api/pilot-api/store/etcd"
	"github.com/pilot-api/pilot-api/store/etcd/embedded"
	"github.com/pilot-api/pilot-api/store/etcd/etcdtest"
	"github.com/pilot-api/pilot-api/store/memory"
	"github.com/pilot-api/pilot-api/store/storetest"
)

// TestWatchesResumeAfterARestart checks that many watches that resume from before a
// restart see every change once and in order. Writers, readers, and unread watches that
// end run beside them and delay no other.
func TestWatchesResumeAfterARestart(t *testing.T) {
	const (
		past, since   = 500, 100
		readers, idle = 200, 100
	)
	dir := t.TempDir()
	e := startEmbedded(t, dir)
	s := etcd.New(e.Client(), "/resume", quiet)
	first := create(t, t.Context(), s, "a")
	for i := range past {
		update(t, t.Context(), s, "a", i+2)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}

	e = startEmbedded(t, dir)
	t.Cleanup(func() { e.Close() })
	s = etcd.New(e.Client(), "/resume", quiet)
	c := start(t, s, cache.Options{})
	group, ctx := errgroup.WithContext(testContext(t))
	for i := range readers {
		after := first.Revision() + int64(i)
		group.Go(func() error { return readAll(ctx, c, after, past-i+since) })
	}
	for range idle {
		group.Go(func() error {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			_, err := c.Watch(ctx, store.Scope{}, first.Revision())
			return err
		})
	}
	group.Go(func() error {
		for i := range since {
			made, err := s.Update(ctx, storetest.Rule(t, "default", "a", past+i+2))
			if err != nil {
				return err
			}
			if got, err := c.Get(ctx, made.Key(), store.ReadOptions{}); err != nil || got.Revision() != made.Revision() {
				return fmt.Errorf("read after the write of %d: %v, %w", made.Revision(), got, err)
			}
		}
		return nil
	})
	if err := group.Wait(); err != nil {
		t.Error(err)
	}
}

// readAll expects n changes of one object, each from the state of the one before, where
// the first follows the given revision.
func readAll(ctx context.Context, s store.Reader, after int64, n int) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w, err := s.Watch(ctx, store.Scope{}, after)
	if err != nil {
		return err
	}
	for last := after; n > 0; {
		b, ok := <-w.Batches()
		if !ok {
			return w.Err()
		}
		for _, ev := range b.Events {
			if before := ev.Previous.Revision(); before != last {
				return fmt.Errorf("watch after %d: told of a change from %d, after %d", after, before, last)
			}
			last = ev.Object.Revision()
			n--
		}
	}
	return nil
}

func startEmbedded(t *testing.T, dir string) *embedded.Etcd {
	t.Helper()
	e, err := embedded.Start(t.Context(), embedded.Options{Dir: dir, Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// TestNothingIsSeenBeforeItIsComplete checks that a cache that first reads the past of
// its source shows none of it.
func TestNothingIsSeenBeforeItIsComplete(t *testing.T) {
	ctx := testContext(t)
	s := etcd.New(etcdtest.Start(t).Client(), "/past", quiet)
	var last *schema.Object
	for i := range 300 {
		last = create(t, ctx, s, fmt.Sprintf("rule-%d", i))
	}
	c := cache.New(s, cache.Options{Log: quiet})
	run(t, c)
	objs, err := c.List(ctx, store.Scope{}, store.ListOptions{AtLeast: store.Any})
	if err != nil || len(objs.Items) != 300 || objs.Revision != last.Revision() {
		t.Errorf("first seen: %d objects at %d, %v", len(objs.Items), objs.Revision, err)
	}
	if err := readAllAdded(ctx, c, last.Revision()-300, 300); err != nil {
		t.Error(err)
	}
}

func readAllAdded(ctx context.Context, s store.Reader, after int64, n int) error {
	w, err := s.Watch(ctx, store.Scope{}, after)
	if err != nil {
		return err
	}
	for last := after; n > 0; {
		b, ok := <-w.Batches()
		if !ok {
			return w.Err()
		}
		for _, ev := range b.Events {
			if last++; ev.Type != store.Added || ev.Object.Revision() != last {
				return fmt.Errorf("told %s of revision %d, want ADDED of %d", ev.Type, ev.Object.Revision(), last)
			}
			n--
		}
	}
	return nil
}

// TestReplayIsBoundedInBytes checks that the replay of a store with large objects is
// bounded.
func TestReplayIsBoundedInBytes(t *testing.T) {
	ctx := testContext(t)
	s := memory.New()
	const size = 1 << 20
	var made []*schema.Object
	for i := range store.ChangeLogBytes / size {
		obj, err := s.Create(ctx, storetest.Large(t, "default", fmt.Sprintf("rule-%d", i), size))
		if err != nil {
			t.Fatal(err)
		}
		made = append(made, obj)
	}
	c := start(t, s, cache.Options{})
	list, err := c.List(ctx, store.Scope{}, store.ListOptions{})
	if err != nil || len(list.Items) != len(made) {
		t.Fatalf("%d objects, %v", len(list.Items), err)
	}
	if _, err := c.Watch(ctx, store.Scope{}, made[0].Revision()); !errors.Is(err, store.ErrExpired) {
		t.Errorf("watch from the first: %v", err)
	}
	if err := readAllAdded(ctx, c, made[len(made)-11].Revision(), 10); err != nil {
		t.Error(err)
	}
}
