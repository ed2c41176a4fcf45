package etcd

import (
	"errors"
	"testing"

	"github.com/pilot-api/pilot-api/store"
	"github.com/pilot-api/pilot-api/store/storetest"
)

// TestQueueIsBoundedInBytes checks that a watch that is not read is ended by few large
// changes as by many small ones, but never by a single one, however large.
func TestQueueIsBoundedInBytes(t *testing.T) {
	const size = 1 << 20
	large := store.Event{Type: store.Added, Object: storetest.Large(t, "default", "a", size)}
	var w watcher
	huge := store.Batch{Revision: 2}
	for range 2 * queueBytes / size {
		huge.Events = append(huge.Events, large)
	}
	if err := w.put(huge); err != nil {
		t.Errorf("one batch: %v", err)
	}
	w = watcher{}
	for i := range queueBytes/size - 1 {
		if err := w.put(store.Batch{Revision: int64(i) + 2, Events: []store.Event{large}}); err != nil {
			t.Fatalf("batch %d: %v", i, err)
		}
	}
	if err := w.put(store.Batch{Revision: 100, Events: []store.Event{large}}); !errors.Is(err, store.ErrSlow) {
		t.Errorf("beyond the bound: %v", err)
	}
}
