package cache_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
	"github.com/pilot-api/pilot-api/store/cache"
	"github.com/pilot-api/pilot-api/store/memory"
)

// said returns the change as a text: "a@2→a@3".
func said(c schema.Change) string {
	name := func(o *schema.Object) string {
		if o == nil {
			return "nothing"
		}
		return o.Meta.Name + "@" + o.Meta.ResourceVersion
	}
	return name(c.Before) + "→" + name(c.After)
}

func TestSince(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := memory.New()
		c := start(t, source, cache.Options{Window: 8})
		synctest.Wait()
		ctx := t.Context()
		if _, _, ok := c.Since(99); ok {
			t.Error("something is known of a revision that is not reached")
		}
		create(t, ctx, source, "a")
		create(t, ctx, source, "b")
		synctest.Wait()
		_, before, _ := c.Snapshot()
		update(t, ctx, source, "a", 2)
		update(t, ctx, source, "a", 3)
		create(t, ctx, source, "short")
		for _, name := range []string{"short", "b"} {
			if _, err := source.Delete(ctx, schema.Key{Kind: "RouteRule", Namespace: "default", Name: name}, store.Preconditions{}); err != nil {
				t.Fatal(err)
			}
		}
		last := create(t, ctx, source, "c")
		synctest.Wait()
		changes, present, ok := c.Since(before)
		var got []string
		for _, change := range changes {
			got = append(got, said(change))
		}
		want := []string{fmt.Sprintf("a@%d→a@%d", before-1, before+2), fmt.Sprintf("b@%d→nothing", before), fmt.Sprintf("nothing→c@%d", last.Revision())}
		if !ok || present != last.Revision() || !slices.Equal(got, want) {
			t.Errorf("%v at %d (%v), want %v at %d", got, present, ok, want, last.Revision())
		}
		if changes, _, ok := c.Since(present); !ok || len(changes) > 0 {
			t.Errorf("since the present: %v %v", changes, ok)
		}
		for i := range 10 {
			create(t, ctx, source, fmt.Sprint("more-", i))
		}
		synctest.Wait()
		if _, _, ok := c.Since(before); ok {
			t.Error("changes that are no longer kept are told")
		}
	})
}

// TestSinceARestore checks that, if a source goes back and reaches a known revision by
// other changes, a reader that knew that revision must read everything.
func TestSinceARestore(t *testing.T) {
	ctx := testContext(t)
	lost, copied := memory.New(), memory.New()
	for i := range 3 {
		create(t, ctx, lost, fmt.Sprintf("lost-%d", i))
	}
	source := &restorable{present: lost}
	c := start(t, source, cache.Options{})
	if err := c.WaitForSync(ctx); err != nil {
		t.Fatal(err)
	}
	_, before, _ := c.Snapshot()
	first := create(t, ctx, copied, "first")
	source.restore(copied)
	awaitObject(t, ctx, c, first.Key())
	last := first
	for i := 0; last.Revision() <= before; i++ {
		last = create(t, ctx, copied, fmt.Sprintf("second-%d", i))
	}
	awaitObject(t, ctx, c, last.Key())
	if changes, _, ok := c.Since(before); ok {
		t.Errorf("since a revision of another past: %d changes", len(changes))
	}
	again := create(t, ctx, copied, "again")
	awaitObject(t, ctx, c, again.Key())
	if changes, present, ok := c.Since(last.Revision()); !ok || len(changes) != 1 || present != again.Revision() {
		t.Errorf("since a revision after it: %v at %d (%v)", changes, present, ok)
	}
}
