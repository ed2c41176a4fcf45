package cache_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/store"
	"github.com/pilot-api/pilot-api/store/cache"
	"github.com/pilot-api/pilot-api/store/etcd"
	"github.com/pilot-api/pilot-api/store/memory"
	"github.com/pilot-api/pilot-api/store/storetest"
)

// TestNoPlaceSplitsATransaction checks that, for every revision from which a watch may
// resume, the changes of that revision can be returned again: with a change log that is
// too short, after a compaction, and after a restart.
func TestNoPlaceSplitsATransaction(t *testing.T) {
	for _, window := range []int{1, 2, 3, 4, 7, 0} {
		t.Run(fmt.Sprintf("window of %d", window), func(t *testing.T) {
			s := memory.New()
			c := start(t, s, cache.Options{Window: window})
			wantWhole(t, c, transactions(t, s))
			wantWhole(t, start(t, s, cache.Options{Window: window}), transactions(t, s)) // Past and future changes.
		})
	}
	for _, ago := range []int64{1, 2, 3, 4} {
		t.Run(fmt.Sprintf("compacted %d ago", ago), func(t *testing.T) {
			s := memory.New()
			done := transactions(t, s)
			s.Compact(done[len(done)-1].Revision - ago)
			wantWhole(t, start(t, s, cache.Options{}), done)
		})
	}
}

// TestNoRestartSplitsATransaction does the same over an etcd that is compacted at its
// oldest revision and at the one before its newest, with a full list each time.
func TestNoRestartSplitsATransaction(t *testing.T) {
	outside.Slow(t)
	dir := t.TempDir()
	e := startEmbedded(t, dir)
	done := transactions(t, etcd.New(e.Client(), "/split", quiet))
	newest := done[len(done)-1].Revision
	for _, compacted := range []int64{0, done[0].Revision, done[2].Revision, newest - 1} {
		if compacted > 0 {
			if _, err := e.Client().Compact(t.Context(), compacted); err != nil {
				t.Fatal(err)
			}
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		e = startEmbedded(t, dir)
		for _, window := range []int{1, 2, 3, 4, 0} {
			s := etcd.New(e.Client(), "/split", quiet)
			wantWhole(t, start(t, s, cache.Options{Window: window}), done)
		}
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}

// transactions makes transactions of several objects each and returns the batches of a
// watch.
func transactions(t *testing.T, s store.Interface) []store.Batch {
	t.Helper()
	after, err := s.Revision(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w, err := s.Watch(t.Context(), store.Scope{}, after)
	if err != nil {
		t.Fatal(err)
	}
	var done []store.Batch
	for i, verb := range []store.Verb{store.OpCreate, store.OpUpdate, store.OpDelete, store.OpCreate, store.OpDelete} {
		var ops []store.Op
		for _, name := range []string{"a", "b"} {
			if verb == store.OpDelete {
				ops = append(ops, store.Op{Verb: verb, Key: storetest.Rule(t, "default", name, i).Key()})
				continue
			}
			ops = append(ops, store.Op{Verb: verb, Object: storetest.Rule(t, "default", name, i)})
		}
		if _, err := s.Txn(t.Context(), ops); err != nil {
			t.Fatal(err)
		}
		done = append(done, <-w.Batches())
	}
	return done
}

// wantWhole resumes from each position at which a transaction may have been delivered
// in part.
func wantWhole(t *testing.T, c *cache.Cache, done []store.Batch) {
	t.Helper()
	if err := c.WaitForSync(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, one := range done {
		err := begin(t, c, one.Revision)
		var again []store.Event
		if err == nil {
			again, err = c.Repeat(store.Scope{}, one.Revision)
		}
		if errors.Is(err, store.ErrExpired) || errors.Is(err, store.ErrSlow) {
			continue
		}
		if err != nil || !slices.EqualFunc(again, one.Events, sameEvent) {
			t.Errorf("revision %d: told again %v, %v, want %v", one.Revision, again, err, one.Events)
		}
	}
}

// begin returns once a watch from a revision has begun.
func begin(t *testing.T, c *cache.Cache, after int64) error {
	w, err := c.Watch(t.Context(), store.Scope{}, after)
	if err != nil {
		return err
	}
	if err := w.RequestProgress(t.Context()); err != nil {
		return err
	}
	if _, ok := <-w.Batches(); !ok {
		return w.Err()
	}
	return nil
}

func sameEvent(a, b store.Event) bool {
	return a.Type == b.Type && a.Object.Key() == b.Object.Key() && string(a.Object.JSON()) == string(b.Object.JSON()) && (a.Previous == nil) == (b.Previous == nil)
}
