package store_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
	"github.com/pilot-api/pilot-api/store/storetest"
)

// addedIn returns a batch of one revision with a new rule in each namespace.
func addedIn(t testing.TB, revision int64, namespaces ...string) store.Batch {
	t.Helper()
	b := store.Batch{Revision: revision}
	for _, namespace := range namespaces {
		obj := storetest.Rule(t, namespace, fmt.Sprintf("rule-%d", revision), 1).AtRevision(revision)
		b.Events = append(b.Events, store.Event{Type: store.Added, Object: obj})
	}
	return b
}

// TestWatchOfWhatHardlyChanges checks that a watch of another scope misses nothing,
// however far the log moves on.
func TestWatchOfWhatHardlyChanges(t *testing.T) {
	l := store.NewChangeLog(1, 10)
	w, err := l.Watch(t.Context(), store.Scope{Kind: storetest.Kind(t, "RouteRule"), Namespace: "quiet"}, 1)
	if err != nil {
		t.Fatal(err)
	}
	progress := func(want int64) {
		t.Helper()
		if err := w.RequestProgress(t.Context()); err != nil {
			t.Fatal(err)
		}
		if b, ok := <-w.Batches(); !ok || len(b.Events) > 0 || b.Revision != want {
			t.Fatalf("%v, open %t (%v), want to be at %d", b, ok, w.Err(), want)
		}
	}
	progress(1) // It is at the end of the log.
	revision := int64(1)
	for round := range 3 {
		for range 100 {
			revision++
			l.Append(addedIn(t, revision, "busy"))
		}
		if round > 0 {
			progress(revision)
		}
		revision++
		l.Append(addedIn(t, revision, "busy", "quiet"))
		b, ok := <-w.Batches()
		if !ok || len(b.Events) != 1 || b.Revision != revision || b.Events[0].Object.Meta.Namespace != "quiet" {
			t.Fatalf("%v, open %t (%v), want the change of %d", b, ok, w.Err(), revision)
		}
	}
	l.Compact(revision)
	progress(revision)
}

// TestWatchesOfAllScopes checks that, while everything changes, each watch gets all
// changes in its scope once and in order, and no revision before it got all changes up
// to it.
func TestWatchesOfAllScopes(t *testing.T) {
	const revisions = 3000
	random := rand.New(rand.NewPCG(1, 2))
	namespaces := []string{"a", "b", "c", "d"}
	l := store.NewChangeLog(1, 2*revisions)
	kinds := []*schema.Kind{nil, storetest.Kind(t, "RouteRule"), storetest.Kind(t, "DestinationPolicy")}
	var batches []store.Batch
	for r := range int64(revisions) {
		random.Shuffle(len(namespaces), func(i, j int) { namespaces[i], namespaces[j] = namespaces[j], namespaces[i] })
		batches = append(batches, addedIn(t, r+2, namespaces[:1+random.IntN(2)]...))
	}
	var all sync.WaitGroup
	for i := range 60 {
		scope := store.Scope{Kind: kinds[i%len(kinds)]}
		if i%2 == 0 {
			scope.Namespace = namespaces[i%len(namespaces)]
		}
		if scope.Kind != nil && i%10 == 0 {
			scope.Name = fmt.Sprintf("rule-%d", revisions/2)
		}
		w, err := l.Watch(t.Context(), scope, 1)
		if err != nil {
			t.Fatal(err)
		}
		all.Go(func() {
			next := pushed(w)
			if i%4 < 2 {
				next = pulled(w)
			}
			if diff := cmp.Diff(toldOf(batches, scope), followTo(t, w, next, revisions+1)); diff != "" {
				t.Errorf("watch of %v (-want +got):\n%s", scope, diff)
			}
		})
	}
	for _, b := range batches {
		l.Append(b)
	}
	all.Wait()
}

func toldOf(batches []store.Batch, scope store.Scope) (told []string) {
	for _, b := range batches {
		for _, ev := range b.In(scope).Events {
			told = append(told, fmt.Sprintf("%d %s", b.Revision, ev.Object.Key()))
		}
	}
	return told
}

// followTo reads a watch up to a revision and requests progress all the while.
func followTo(t *testing.T, w store.Watcher, next func() (store.Batch, bool), revision int64) (told []string) {
	for at := int64(0); at < revision; {
		_ = w.RequestProgress(t.Context())
		b, ok := next()
		if !ok {
			t.Errorf("ended at %d: %v", at, w.Err())
			return told
		}
		for _, ev := range b.Events {
			if r := ev.Object.Revision(); r <= at || r > b.Revision {
				t.Errorf("revision %d comes after %d was told, in a batch of %d", r, at, b.Revision)
			}
			told = append(told, fmt.Sprintf("%d %s", ev.Object.Revision(), ev.Object.Key()))
		}
		at = b.Revision
	}
	return told
}

// pushed and pulled are the two ways to read a watch.
func pushed(w store.Watcher) func() (store.Batch, bool) {
	return func() (store.Batch, bool) {
		b, ok := <-w.Batches()
		return b, ok
	}
}

func pulled(w store.Puller) func() (store.Batch, bool) {
	return func() (store.Batch, bool) {
		for {
			if b, some, err := w.Pull(); some || err != nil {
				return b, err == nil
			}
			<-w.Ready()
		}
	}
}

// TestPulledWatchesEnd checks that a reader that pulls gets every end, repeatedly, that
// onEnd is called, and that thousands of waiting watches have no goroutine.
func TestPulledWatchesEnd(t *testing.T) {
	l := store.NewChangeLog(1, 10)
	ctx, cancel := context.WithCancel(t.Context())
	ended := 0
	watch := func() store.Puller {
		w, err := l.Watch(ctx, store.Scope{}, l.Revision(), func() { ended++ })
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	goroutines := runtime.NumGoroutine()
	for range 1000 {
		if b, some, err := watch().Pull(); some || err != nil {
			t.Fatal(b, err)
		}
	}
	if more := runtime.NumGoroutine() - goroutines; more > 10 {
		t.Errorf("%d goroutines for 1000 watches", more)
	}
	want := func(w store.Puller, want error) {
		t.Helper()
		for range 2 {
			if b, some, err := w.Pull(); some || !errors.Is(err, want) || !errors.Is(w.Err(), want) {
				t.Errorf("got %v %t %v, Err %v, want %v", b, some, err, w.Err(), want)
			}
		}
	}
	slow := watch()
	for r := range int64(20) {
		l.Append(addedIn(t, r+2, "a"))
	}
	want(slow, store.ErrSlow)
	reset := watch()
	l.Reset(store.Batch{Revision: 100})
	want(reset, store.ErrExpired)
	last := watch()
	cancel()
	l.Append(addedIn(t, 101, "a"))
	want(last, context.Canceled)
	if ended != 3 {
		t.Errorf("%d of 3 ends were told", ended)
	}
}

// TestPulledWatchIsAlwaysWoken checks that there is nothing to pull whenever Ready has
// no token, whatever happens between two pulls. A reader may stop after any batch and
// wait.
func TestPulledWatchIsAlwaysWoken(t *testing.T) {
	kind := storetest.Kind(t, "RouteRule")
	rapid.Check(t, func(rt *rapid.T) {
		l := store.NewChangeLog(1, 1000)
		w, err := l.Watch(t.Context(), store.Scope{Kind: kind, Namespace: "a"}, 1)
		if err != nil {
			rt.Fatal(err)
		}
		revision := int64(1)
		rt.Repeat(map[string]func(*rapid.T){
			"change":  func(*rapid.T) { revision++; l.Append(addedIn(t, revision, "a")) },
			"another": func(*rapid.T) { revision++; l.Append(addedIn(t, revision, "b")) },
			"wish":    func(*rapid.T) { _ = w.RequestProgress(t.Context()) },
			"look": func(rt *rapid.T) {
				select {
				case <-w.Ready():
					_, _, _ = w.Pull()
				default:
					if b, some, err := w.Pull(); some || err != nil {
						rt.Fatalf("%v, %v came without a token", b, err)
					}
				}
			},
			"glance": func(*rapid.T) { _, _, _ = w.Pull() },
		})
	})
}

// BenchmarkAppendBesideWatches measures a change of one object, or a transaction of a
// thousand, beside watches of other namespaces or other objects by name.
func BenchmarkAppendBesideWatches(b *testing.B) {
	for _, c := range []struct {
		watches, objects int
		scope            func(i int) store.Scope
	}{
		{0, 1, nil},
		{10_000, 1, func(i int) store.Scope { return store.Scope{Namespace: fmt.Sprintf("quiet-%d", i)} }},
		{10_000, 1, func(i int) store.Scope { return store.Scope{Namespace: "busy", Name: fmt.Sprintf("other-%d", i)} }},
		{0, 1000, nil},
		{10_000, 1000, func(i int) store.Scope { return store.Scope{Namespace: "busy", Name: fmt.Sprintf("other-%d", i)} }},
	} {
		b.Run(fmt.Sprintf("%d-of-%d", c.objects, c.watches), func(b *testing.B) {
			l := store.NewChangeLog(1, 10)
			for i := range c.watches {
				scope := c.scope(i)
				scope.Kind = storetest.Kind(b, "RouteRule")
				w, err := l.Watch(b.Context(), scope, 1)
				if err != nil {
					b.Fatal(err)
				}
				if _, some, err := w.Pull(); some || err != nil {
					b.Fatal(err)
				}
			}
			objects := make([]*schema.Object, c.objects)
			for i := range objects {
				objects[i] = storetest.Rule(b, "busy", fmt.Sprintf("rule-%d", i), 1)
			}
			for i := range b.N {
				batch := store.Batch{Revision: int64(i + 2)}
				for _, o := range objects {
					batch.Events = append(batch.Events, store.Event{Type: store.Modified, Object: o.AtRevision(batch.Revision)})
				}
				l.Append(batch)
			}
		})
	}
}
