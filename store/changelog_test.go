package store_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
	"github.com/pilot-api/pilot-api/store/storetest"
)

// added returns a batch with one new object for each revision.
func added(t *testing.T, revisions ...int64) store.Batch {
	t.Helper()
	var b store.Batch
	for _, r := range revisions {
		obj := storetest.Rule(t, "default", fmt.Sprintf("rule-%d", r), 1).AtRevision(r)
		b.Revision = r
		b.Events = append(b.Events, store.Event{Type: store.Added, Object: obj})
	}
	return b
}

// revisionsOf reads n batches and returns their revisions.
func revisionsOf(t *testing.T, w store.Watcher, n int) []int64 {
	t.Helper()
	var got []int64
	for range n {
		b, ok := <-w.Batches()
		if !ok {
			t.Fatalf("ended after %v: %v", got, w.Err())
		}
		got = append(got, b.Revision)
	}
	return got
}

func endOf(w store.Watcher) error {
	for range w.Batches() {
		continue
	}
	return w.Err()
}

func TestChangeLogSplitsRevisions(t *testing.T) {
	h := store.NewChangeLog(1, 100)
	w, err := h.Watch(t.Context(), store.Scope{}, 3)
	if err != nil {
		t.Fatal(err)
	}
	h.Append(added(t, 2, 3, 4, 5))
	if diff := cmp.Diff([]int64{4, 5}, revisionsOf(t, w, 2)); diff != "" {
		t.Errorf("watch after 3 (-want +got):\n%s", diff)
	}
	if since, err := h.Since(2); err != nil || len(since) != 3 {
		t.Errorf("since 2: %v, %v", since, err)
	}
}

// TestChangeLogBundlesForWhoIsBehind checks that a reader that is behind gets all
// changes once and in order, in far fewer batches than revisions, each with the
// revision at its end.
func TestChangeLogBundlesForWhoIsBehind(t *testing.T) {
	const revisions = 1000
	l := store.NewChangeLog(1, 2*revisions)
	for r := range int64(revisions) {
		l.Append(added(t, r+2))
	}
	w, err := l.Watch(t.Context(), store.Scope{}, 1)
	if err != nil {
		t.Fatal(err)
	}
	batches := 0
	for last := int64(1); last < revisions+1; batches++ {
		b := <-w.Batches()
		for _, ev := range b.Events {
			if last++; ev.Object.Revision() != last {
				t.Fatalf("revision %d came, want %d", ev.Object.Revision(), last)
			}
		}
		if b.Revision != last {
			t.Fatalf("a batch of revision %d ends at %d", b.Revision, last)
		}
	}
	if batches > revisions/10 {
		t.Errorf("%d batches for %d revisions", batches, revisions)
	}
}

func TestChangeLogCutsOffWhoDoesNotRead(t *testing.T) {
	h := store.NewChangeLog(1, 10)
	w, err := h.Watch(t.Context(), store.Scope{}, 1)
	if err != nil {
		t.Fatal(err)
	}
	for r := int64(2); r < 100; r++ {
		h.Append(added(t, r))
	}
	if err := endOf(w); !errors.Is(err, store.ErrSlow) {
		t.Errorf("ended with %v", err)
	}
	if since, err := h.Since(89); err != nil || len(since) != 10 {
		t.Errorf("kept %d batches, %v", len(since), err)
	}
	if _, err := h.Since(88); !errors.Is(err, store.ErrExpired) {
		t.Errorf("since 88: %v", err)
	}
}

// TestChangeLogIsBoundedInBytes checks that few large objects count like many small
// ones.
func TestChangeLogIsBoundedInBytes(t *testing.T) {
	const size = 1 << 20
	spec := json.RawMessage(`{"payload":"` + strings.Repeat("x", size) + `"}`)
	h := store.NewChangeLog(1, 10_000)
	last := int64(1)
	for last < 600 { // The array gets spare capacity.
		last++
		h.Append(added(t, last))
	}
	before := heap()
	for range 2 * store.ChangeLogBytes / size {
		last++
		meta := metav1.ObjectMeta{Namespace: "default", Name: "large", ResourceVersion: strconv.FormatInt(last, 10)}
		obj, err := schema.New(storetest.Kind(t, "RouteRule"), meta, spec)
		if err != nil {
			t.Fatal(err)
		}
		h.Append(store.Batch{Revision: last, Events: []store.Event{{Type: store.Modified, Object: obj}}})
	}
	if after := heap(); after > before+3*store.ChangeLogBytes/2 {
		t.Errorf("holds %d MiB", (after-before)>>20)
	}
	const kept = store.ChangeLogBytes/size - 1 // An object is more than its payload.
	if since, err := h.Since(last - kept); err != nil || len(since) != kept {
		t.Errorf("kept fewer than %d batches: %v", kept, err)
	}
	if _, err := h.Since(last - kept - 1); !errors.Is(err, store.ErrExpired) {
		t.Errorf("kept more than %d batches: %v", kept, err)
	}
}

// heap returns the bytes of the heap in use.
func heap() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

func TestChangeLogKeepsOneBatchHoweverLarge(t *testing.T) {
	h := store.NewChangeLog(1, 2)
	b := added(t, 2)
	b.Events = append(b.Events, b.Events[0], b.Events[0], b.Events[0])
	h.Append(b)
	if since, err := h.Since(1); err != nil || len(since) != 1 || len(since[0].Events) != 4 {
		t.Errorf("since 1: %v, %v", since, err)
	}
}

func TestChangeLogResetEndsWatches(t *testing.T) {
	h := store.NewChangeLog(1, 10)
	w, err := h.Watch(t.Context(), store.Scope{}, 1)
	if err != nil {
		t.Fatal(err)
	}
	h.Reset(store.Batch{Revision: 50})
	if err := endOf(w); !errors.Is(err, store.ErrExpired) {
		t.Errorf("ended with %v", err)
	}
	if h.Revision() != 50 {
		t.Errorf("at revision %d", h.Revision())
	}
}

// TestChangeLogCompactSparesReaders checks that a compaction does not end the watch of
// a reader that has read everything, even if nothing happened in its scope for long.
func TestChangeLogCompactSparesReaders(t *testing.T) {
	h := store.NewChangeLog(1, 10)
	w, err := h.Watch(t.Context(), store.Scope{Namespace: "quiet"}, 1)
	if err != nil {
		t.Fatal(err)
	}
	h.Append(added(t, 2, 3))
	h.Append(store.Batch{Revision: 9})
	if err := w.RequestProgress(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]int64{9}, revisionsOf(t, w, 1)); diff != "" {
		t.Fatalf("progress (-want +got):\n%s", diff)
	}
	h.Compact(9)
	h.Append(store.Batch{Revision: 10})
	if err := w.RequestProgress(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]int64{10}, revisionsOf(t, w, 1)); diff != "" {
		t.Errorf("progress after compaction (-want +got):\n%s", diff)
	}
}
