package cache_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
	"github.com/pilot-api/pilot-api/store/cache"
	"github.com/pilot-api/pilot-api/store/memory"
)

// restorable is a source that can be reset to another state at an earlier revision,
// like an etcd that was restored from a copy.
type restorable struct {
	mu      sync.Mutex
	present *memory.Store
	cancel  context.CancelFunc
}

func (r *restorable) now() *memory.Store {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.present
}

func (r *restorable) restore(s *memory.Store) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.present = s
	if r.cancel != nil { // Otherwise there is no watch yet.
		r.cancel()
	}
}

func (r *restorable) Get(ctx context.Context, key schema.Key, opts store.ReadOptions) (*schema.Object, error) {
	return r.now().Get(ctx, key, opts)
}

func (r *restorable) List(ctx context.Context, scope store.Scope, opts store.ListOptions) (*store.List, error) {
	return r.now().List(ctx, scope, opts)
}

func (r *restorable) Watch(ctx context.Context, scope store.Scope, after int64) (store.Watcher, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	ctx, r.cancel = context.WithCancel(ctx)
	return r.present.Watch(ctx, scope, after)
}

func (r *restorable) Revision(ctx context.Context) (int64, error) { return r.now().Revision(ctx) }

// TestHandlerAtWorkDuringARestore checks that a handler that is still in its first
// calls when the store goes back to an older revision still gets what is gone and what
// is new.
func TestHandlerAtWorkDuringARestore(t *testing.T) {
	const before = 20
	ctx := testContext(t)
	lost, copied := memory.New(), memory.New()
	for i := range before {
		create(t, ctx, lost, fmt.Sprintf("lost-%d", i))
	}
	create(t, ctx, copied, "old")
	source := &restorable{present: lost}
	c := cache.New(source, cache.Options{Log: quiet})
	told := newDiary()
	handler := told.handler()
	stuck, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	writeDown := handler.Add
	handler.Add = func(o *schema.Object) {
		once.Do(func() {
			close(stuck)
			<-release
		})
		writeDown(o)
	}
	c.Handle(nil, handler)
	run(t, c)
	<-stuck
	source.restore(copied)
	fresh := create(t, ctx, copied, "fresh")
	awaitObject(t, ctx, c, fresh.Key())
	close(release)
	create(t, ctx, copied, "last")
	calls := map[string]int{}
	var gone []string
	for _, line := range told.wait(t, ctx, before+3+before) {
		verb, name, _ := strings.Cut(line, " ")
		calls[verb]++
		if verb == "delete" {
			gone = append(gone, name)
		}
	}
	if !slices.IsSorted(gone) {
		t.Errorf("deleted in no order: %v", gone)
	}
	if calls["add"] != before+3 || calls["delete"] != before {
		t.Errorf("calls %v, want %d adds and %d deletes", calls, before+3, before)
	}
}

// awaitObject waits until a cache has an object.
func awaitObject(t *testing.T, ctx context.Context, c *cache.Cache, key schema.Key) {
	t.Helper()
	for {
		changed := c.Changed()
		if _, err := c.Get(ctx, key, store.ReadOptions{AtLeast: store.Any}); err == nil {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			t.Fatalf("%s has not come: %v", key, ctx.Err())
		}
	}
}
