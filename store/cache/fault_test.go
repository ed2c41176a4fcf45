package cache_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
	"github.com/pilot-api/pilot-api/store/cache"
	"github.com/pilot-api/pilot-api/store/etcd"
	"github.com/pilot-api/pilot-api/store/etcd/etcdtest"
	"github.com/pilot-api/pilot-api/store/memory"
	"github.com/pilot-api/pilot-api/store/storetest"
)

// limit ends a test that hangs.
const limit = 30 * time.Second

func testContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	return ctx
}

// diary is a handler that records its calls.
type diary struct {
	mu    sync.Mutex
	lines []string
	grown chan struct{}
}

func newDiary() *diary { return &diary{grown: make(chan struct{})} }

func (d *diary) write(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, fmt.Sprintf(format, args...))
	close(d.grown)
	d.grown = make(chan struct{})
}

func (d *diary) handler() cache.Handler {
	return cache.Handler{
		Add: func(o *schema.Object) { d.write("add %s@%s", o.Meta.Name, o.Meta.ResourceVersion) },
		Update: func(a, b *schema.Object) {
			d.write("update %s@%s to %s", a.Meta.Name, a.Meta.ResourceVersion, b.Meta.ResourceVersion)
		},
		Delete: func(o *schema.Object) { d.write("delete %s", o.Meta.Name) },
	}
}

// wait returns the recorded lines once there are n.
func (d *diary) wait(t *testing.T, ctx context.Context, n int) []string {
	t.Helper()
	for {
		d.mu.Lock()
		lines, grown := append([]string(nil), d.lines...), d.grown
		d.mu.Unlock()
		if len(lines) >= n {
			return lines
		}
		select {
		case <-grown:
		case <-ctx.Done():
			t.Fatalf("only %d of %d calls came: %v", len(lines), n, lines)
		}
	}
}

func create(t *testing.T, ctx context.Context, s store.Interface, name string) *schema.Object {
	t.Helper()
	obj, err := s.Create(ctx, storetest.Rule(t, "default", name, 1))
	if err != nil {
		t.Fatal(err)
	}
	return obj
}

func update(t *testing.T, ctx context.Context, s store.Interface, name string, precedence int) *schema.Object {
	t.Helper()
	obj, err := s.Update(ctx, storetest.Rule(t, "default", name, precedence))
	if err != nil {
		t.Fatal(err)
	}
	return obj
}

// TestEtcdGone stops etcd while a cache, a handler and a watch run over it. Meanwhile
// writes and fresh reads fail in time and old state can be read. Afterwards everything
// continues, and no change is missed or delivered twice.
func TestEtcdGone(t *testing.T) {
	outside.Slow(t)
	ctx := testContext(t)
	server := etcdtest.Start(t)
	source := etcd.New(server.Client(), etcd.DefaultPrefix, quiet)
	c := cache.New(source, cache.Options{Log: quiet})
	told := newDiary()
	c.Handle(nil, told.handler())
	run(t, c)
	before := create(t, ctx, source, "before")
	watch, err := c.Watch(ctx, store.Scope{}, before.Revision())
	if err != nil {
		t.Fatal(err)
	}
	told.wait(t, ctx, 1)

	server.Stop()
	short, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
	defer cancel()
	if _, err := source.Create(short, storetest.Rule(t, "default", "meanwhile", 1)); !errors.Is(err, store.ErrOutcomeUnknown) {
		t.Errorf("a write without etcd: %v", err)
	}
	if _, err := c.Get(short, before.Key(), store.ReadOptions{}); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("a fresh read without etcd: %v", err)
	}
	if _, err := c.Get(ctx, before.Key(), store.ReadOptions{AtLeast: store.Any}); err != nil {
		t.Errorf("any read without etcd: %v", err)
	}
	if objs, _, ok := c.Snapshot(); !ok || len(objs) != 1 {
		t.Errorf("snapshot without etcd: %v, %v", objs, ok)
	}

	server.Restart()
	after := create(t, ctx, source, "after")
	again := update(t, ctx, source, "before", 2)
	if got, err := c.Get(ctx, before.Key(), store.ReadOptions{}); err != nil || got.Revision() != again.Revision() {
		t.Errorf("a fresh read after the restart: %v", err)
	}
	want := []string{
		fmt.Sprintf("add before@%d", before.Revision()),
		fmt.Sprintf("add after@%d", after.Revision()),
		fmt.Sprintf("update before@%d to %d", before.Revision(), again.Revision()),
	}
	if diff := cmp.Diff(want, told.wait(t, ctx, 3)); diff != "" {
		t.Errorf("handler (-want +got):\n%s", diff)
	}
	for _, want := range []*schema.Object{after, again} {
		if b := <-watch.Batches(); len(b.Events) != 1 || b.Events[0].Object.Revision() != want.Revision() {
			t.Errorf("watch told %+v, want revision %d; %v", b, want.Revision(), watch.Err())
		}
	}
}

// cut is a source whose watches can be cut, as a network is.
type cut struct {
	*memory.Store
	mu     sync.Mutex
	cancel context.CancelFunc
	gone   bool
}

var errCut = &store.Error{Kind: store.ErrUnavailable, Detail: "cut"}

func (c *cut) Watch(ctx context.Context, scope store.Scope, after int64) (store.Watcher, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gone {
		return nil, errCut
	}
	ctx, c.cancel = context.WithCancel(ctx)
	return c.Store.Watch(ctx, scope, after)
}

// without runs f while no watch works.
func (c *cut) without(f func()) {
	c.mu.Lock()
	c.gone = true
	if c.cancel != nil {
		c.cancel()
	}
	c.mu.Unlock()
	f()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gone = false
}

// TestCompactionTellsTheDifference checks that, if the changes during a time without a
// watch are compacted, handlers get the difference and watches end with ErrExpired.
func TestCompactionTellsTheDifference(t *testing.T) {
	ctx := testContext(t)
	source := &cut{Store: memory.New()}
	c := cache.New(source, cache.Options{Log: quiet})
	told := newDiary()
	c.Handle(storetest.Kind(t, "RouteRule"), told.handler())
	run(t, c)
	same, changed, gone := create(t, ctx, source, "same"), create(t, ctx, source, "changed"), create(t, ctx, source, "gone")
	told.wait(t, ctx, 3)
	watch, err := c.Watch(ctx, store.Scope{}, gone.Revision())
	if err != nil {
		t.Fatal(err)
	}
	var last *schema.Object
	source.without(func() {
		update(t, ctx, source, "changed", 2)
		last = update(t, ctx, source, "changed", 3)
		if _, err := source.Delete(ctx, gone.Key(), store.Preconditions{}); err != nil {
			t.Fatal(err)
		}
		fleeting := create(t, ctx, source, "fleeting")
		if _, err := source.Delete(ctx, fleeting.Key(), store.Preconditions{}); err != nil {
			t.Fatal(err)
		}
		create(t, ctx, source, "fresh")
		newest, _ := source.Revision(ctx)
		source.Compact(newest)
	})
	got := told.wait(t, ctx, 6)[3:]
	fresh, err := c.Get(ctx, schema.Key{Kind: "RouteRule", Namespace: "default", Name: "fresh"}, store.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"delete gone",
		fmt.Sprintf("update changed@%d to %d", changed.Revision(), last.Revision()),
		fmt.Sprintf("add fresh@%d", fresh.Revision()),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("handler (-want +got):\n%s", diff)
	}
	for range watch.Batches() {
		t.Error("a watch was told of changes that it may have missed others of")
	}
	if !errors.Is(watch.Err(), store.ErrExpired) {
		t.Errorf("watch ended with %v", watch.Err())
	}
	if obj, err := c.Get(ctx, same.Key(), store.ReadOptions{}); err != nil || obj.Revision() != same.Revision() {
		t.Errorf("the untouched object: %v, %v", obj, err)
	}
}

// TestDisconnectGoesOn checks that a broken watch without a compaction causes no full
// list, so that watches over the cache continue.
func TestDisconnectGoesOn(t *testing.T) {
	ctx := testContext(t)
	source := &cut{Store: memory.New()}
	c := start(t, source, cache.Options{})
	first := create(t, ctx, source, "first")
	watch, err := c.Watch(ctx, store.Scope{}, first.Revision())
	if err != nil {
		t.Fatal(err)
	}
	var during *schema.Object
	source.without(func() { during = create(t, ctx, source, "during") })
	after := create(t, ctx, source, "after")
	for _, want := range []*schema.Object{during, after} {
		if b := <-watch.Batches(); b.Revision != want.Revision() {
			t.Errorf("told revision %d, want %d; %v", b.Revision, want.Revision(), watch.Err())
		}
	}
}

// TestFreshReadNotInTime checks that a read that must reflect every write fails with
// ErrUnavailable if the copy does not catch up. ErrFuture would be wrong, because the
// caller asked for no revision.
func TestFreshReadNotInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &cut{Store: memory.New()}
		c := start(t, source, cache.Options{})
		synctest.Wait()
		source.without(func() {
			unseen := create(t, t.Context(), source, "unseen")
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, err := c.Get(ctx, unseen.Key(), store.ReadOptions{})
			if !errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrFuture) {
				t.Errorf("got %v", err)
			}
			if code := store.ToStatus(err).Code; code != http.StatusServiceUnavailable {
				t.Errorf("told as %d", code)
			}
		})
	})
}

// TestErr checks that Err returns why a cache cannot follow its source, as long as it
// cannot.
func TestErr(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &cut{Store: memory.New()}
		c := cache.New(source, cache.Options{Log: quiet})
		if err := c.Err(); err != nil {
			t.Errorf("before Run: %v", err)
		}
		source.without(func() {
			run(t, c)
			synctest.Wait()
			if err := c.Err(); !errors.Is(err, errCut) {
				t.Errorf("without a watch: %v", err)
			}
		})
		time.Sleep(time.Second) // In the bubble: longer than one pause between tries.
		if err := c.Err(); err != nil {
			t.Errorf("with a watch: %v", err)
		}
	})
}
