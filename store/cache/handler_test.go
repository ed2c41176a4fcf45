package cache_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
	"github.com/pilot-api/pilot-api/store/cache"
	"github.com/pilot-api/pilot-api/store/memory"
	"github.com/pilot-api/pilot-api/store/storetest"
)

func TestHandlerRegisteredLate(t *testing.T) {
	ctx := testContext(t)
	source := memory.New()
	c := start(t, source, cache.Options{})
	a := create(t, ctx, source, "a")
	if _, err := source.Create(ctx, storetest.Service(t, "default", "not-a-rule")); err != nil {
		t.Fatal(err)
	}
	b := create(t, ctx, source, "b")
	if _, err := c.List(ctx, store.Scope{}, store.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	told := newDiary()
	c.Handle(storetest.Kind(t, "RouteRule"), told.handler())
	told.wait(t, ctx, 2)
	if _, err := source.Delete(ctx, a.Key(), store.Preconditions{}); err != nil {
		t.Fatal(err)
	}
	want := []string{fmt.Sprintf("add a@%d", a.Revision()), fmt.Sprintf("add b@%d", b.Revision()), "delete a"}
	if diff := cmp.Diff(want, told.wait(t, ctx, 3)); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

// TestSlowHandlerHoldsUpNobody checks that a blocked handler stops neither the copy nor
// other handlers, and that it gets what it missed as a difference when it returns.
func TestSlowHandlerHoldsUpNobody(t *testing.T) {
	ctx := testContext(t)
	source := memory.New()
	c := cache.New(source, cache.Options{Log: quiet, Window: 5})
	first := create(t, ctx, source, "a")
	slow, quick := newDiary(), newDiary()
	stuck, release := make(chan struct{}), make(chan struct{})
	handler := slow.handler()
	writeDown := handler.Add
	handler.Add = func(o *schema.Object) {
		close(stuck)
		select {
		case <-release:
		case <-ctx.Done():
		}
		writeDown(o)
	}
	c.Handle(nil, handler)
	c.Handle(nil, quick.handler())
	run(t, c)
	<-stuck
	quick.wait(t, ctx, 1)
	var last *schema.Object
	for i := range 20 {
		last = update(t, ctx, source, "a", i+2)
		quick.wait(t, ctx, i+2)
	}
	close(release)
	got := slow.wait(t, ctx, 2)
	for end := fmt.Sprintf(" to %d", last.Revision()); !strings.HasSuffix(got[len(got)-1], end); {
		got = slow.wait(t, ctx, len(got)+1)
	}
	// One change may already have been on its way to the handler.
	if got[0] != fmt.Sprintf("add a@%d", first.Revision()) || len(got) > 3 {
		t.Errorf("calls %v", got)
	}
}

func TestChangedTellsOfChangesOnly(t *testing.T) {
	ctx := testContext(t)
	source := memory.New()
	c := cache.New(source, cache.Options{Log: quiet})
	if _, _, ok := c.Snapshot(); ok || c.HasSynced() {
		t.Error("synced before Run")
	}
	synced := c.Changed()
	run(t, c)
	<-synced
	if objs, revision, ok := c.Snapshot(); !ok || len(objs) != 0 || revision != 1 {
		t.Errorf("snapshot of an empty store: %v at %d, %v", objs, revision, ok)
	}
	changed := c.Changed()
	a := create(t, ctx, source, "a")
	<-changed
	objs, revision, ok := c.Snapshot()
	if !ok || len(objs) != 1 || revision != a.Revision() {
		t.Errorf("snapshot: %v at %d, %v", objs, revision, ok)
	}
	changed = c.Changed()
	if _, err := c.Get(ctx, a.Key(), store.ReadOptions{}); err != nil {
		t.Fatal(err)
	}
	select {
	case <-changed:
		t.Error("a read was told as a change")
	default:
	}
}
