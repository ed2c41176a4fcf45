package cache_test

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
	"github.com/pilot-api/pilot-api/store/cache"
	"github.com/pilot-api/pilot-api/store/memory"
	"github.com/pilot-api/pilot-api/store/storetest"
)

// faulty is a source whose first watch changes its batches as the test wants.
type faulty struct {
	*memory.Store
	once  sync.Once
	fault func(store.Batch) []store.Batch
}

func (f *faulty) Watch(ctx context.Context, scope store.Scope, after int64) (store.Watcher, error) {
	w, err := f.Store.Watch(ctx, scope, after)
	if err != nil {
		return nil, err
	}
	f.once.Do(func() { w = bend(ctx, w, f.fault) })
	return w, nil
}

// bent is a watch with changed batches.
type bent struct {
	store.Watcher
	out chan store.Batch
}

func (b *bent) Batches() <-chan store.Batch { return b.out }

func bend(ctx context.Context, w store.Watcher, fault func(store.Batch) []store.Batch) store.Watcher {
	b := &bent{Watcher: w, out: make(chan store.Batch)}
	go func() {
		defer close(b.out)
		for in := range w.Batches() {
			for _, out := range fault(in) {
				select {
				case b.out <- out:
				case <-ctx.Done():
				}
			}
		}
	}()
	return b
}

// losing drops the batches of one revision. With told it keeps the revision number.
func losing(revision int64, told bool) func(store.Batch) []store.Batch {
	return func(b store.Batch) []store.Batch {
		switch {
		case b.Revision != revision || len(b.Events) == 0:
			return []store.Batch{b}
		case told:
			return []store.Batch{{Revision: b.Revision}}
		}
		return nil
	}
}

// TestMissedChangesAreFound checks that the copy finds by itself whatever a feed loses,
// repeats or reorders, logs it, and is correct again.
func TestMissedChangesAreFound(t *testing.T) {
	// The store: a is made at 2, b at 3, a is changed at 4, b is gone at 5,
	// b is made at 6, and a is changed at 7.
	var held []store.Batch
	cases := []struct {
		name  string
		fault func(store.Batch) []store.Batch
		// finds says what detects the fault: the next event, or the count.
		finds string
	}{
		{"a creation", losing(2, false), "follows"},
		{"a creation, under a progress that lies", losing(2, true), "follows"},
		{"a change", losing(4, false), "follows"},
		{"a deletion", losing(5, false), "follows"},
		{"the last creation", losing(6, true), "it holds"},
		{"a batch again", func(b store.Batch) []store.Batch {
			if b.Revision == 4 {
				return []store.Batch{b, b}
			}
			return []store.Batch{b}
		}, "came after"},
		{"the order", func(b store.Batch) []store.Batch {
			if b.Revision == 4 {
				held = append(held, b)
				return nil
			}
			b2 := append([]store.Batch{b}, held...)
			held = nil
			return b2
		}, "came after"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { missed(t, c.fault, c.finds) })
		})
	}
}

func missed(t *testing.T, fault func(store.Batch) []store.Batch, finds string) {
	var said strings.Builder
	source := &faulty{Store: memory.New(), fault: fault}
	c := cache.New(source, cache.Options{Log: slog.New(slog.NewTextHandler(&said, &slog.HandlerOptions{Level: slog.LevelError}))})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- c.Run(ctx) }()
	synctest.Wait()

	create(t, ctx, source, "a")
	b := create(t, ctx, source, "b")
	update(t, ctx, source, "a", 2)
	if _, err := source.Delete(ctx, b.Key(), store.Preconditions{}); err != nil {
		t.Fatal(err)
	}
	create(t, ctx, source, "b")
	update(t, ctx, source, "a", 3)
	time.Sleep(time.Minute) // In the bubble.

	want, err := source.List(ctx, store.Scope{}, store.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	got, revision, _ := c.Snapshot()
	if strings.Join(versions(got), " ") != strings.Join(versions(want.Items), " ") || revision != want.Revision {
		t.Errorf("copy %v at %d, store %v at %d", versions(got), revision, versions(want.Items), want.Revision)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if !strings.Contains(said.String(), finds) || c.Relists() != 1 {
		t.Errorf("listed again %d times, and said %q, want a word of %q", c.Relists(), said.String(), finds)
	}
}

// TestWhatCameBeforeAMissIsTold checks that, if the second half of a batch does not
// follow, the first half is in the copy and waiters for changes are notified.
func TestWhatCameBeforeAMissIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ghost := storetest.Rule(t, "default", "ghost", 1)
		source := &faulty{Store: memory.New(), fault: func(b store.Batch) []store.Batch {
			if len(b.Events) == 0 {
				return []store.Batch{b}
			}
			gone := ghost.AtRevision(b.Revision + 1)
			return []store.Batch{{Revision: b.Revision + 1, Events: append(b.Events, store.Event{Type: store.Deleted, Object: gone})}}
		}}
		c := start(t, source, cache.Options{})
		synctest.Wait()
		changed := c.Changed()
		create(t, t.Context(), source, "a")
		time.Sleep(time.Minute) // In the bubble.
		select {
		case <-changed:
		default:
			objs, _, _ := c.Snapshot()
			t.Errorf("nobody was told of %v", versions(objs))
		}
	})
}

func versions(objs []*schema.Object) []string {
	var out []string
	for _, o := range objs {
		out = append(out, o.Key().String()+"@"+o.Meta.ResourceVersion)
	}
	return out
}

// TestFeedThatStandsStillIsReplaced checks that a watch that delivers nothing while the
// store moves on is replaced, and that no other watch ends because of it.
func TestFeedThatStandsStillIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &faulty{Store: memory.New(), fault: func(store.Batch) []store.Batch { return nil }}
		c := start(t, source, cache.Options{})
		synctest.Wait()
		w, err := c.Watch(t.Context(), store.Scope{}, 1)
		if err != nil {
			t.Fatal(err)
		}
		made := create(t, t.Context(), source, "a")
		if b := <-w.Batches(); b.Revision != made.Revision() || c.Relists() != 0 {
			t.Errorf("told %+v, listed again %d times", b, c.Relists())
		}
	})
}

// uncounted is a source in which some objects cannot be read.
type uncounted struct {
	*memory.Store
	unreadable atomic.Int32
}

func (u *uncounted) Count(ctx context.Context) (int, int64, error) {
	n, revision, err := u.Store.Count(ctx)
	return n + int(u.unreadable.Load()), revision, err
}

func (u *uncounted) List(ctx context.Context, scope store.Scope, opts store.ListOptions) (*store.List, error) {
	l, err := u.Store.List(ctx, scope, opts)
	if err == nil {
		for i := range u.unreadable.Load() {
			l.Unreadable = append(l.Unreadable, store.Unreadable{Place: strconv.Itoa(int(i))})
		}
	}
	return l, err
}

// TestUnreadableObjectsAreNoLoss checks that a count that differs by unreadable
// objects, from the beginning or since, ends no watch.
func TestUnreadableObjectsAreNoLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &uncounted{Store: memory.New()}
		source.unreadable.Store(1)
		c := start(t, source, cache.Options{})
		create(t, t.Context(), source, "a")
		time.Sleep(time.Minute) // In the bubble.
		source.unreadable.Store(3)
		time.Sleep(time.Minute)
		if c.Relists() != 0 {
			t.Errorf("listed again %d times", c.Relists())
		}
	})
}

// TestStoreGoesBack checks that the cache notices a store that is reset to an older
// state while the watch goes on.
func TestStoreGoesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &backwards{Store: memory.New(), old: memory.New()}
		c := start(t, source, cache.Options{})
		synctest.Wait()
		create(t, t.Context(), source.Store, "lost")
		create(t, t.Context(), source.Store, "lost-too")
		synctest.Wait()
		create(t, t.Context(), source.old, "kept")
		source.gone.Store(true)
		time.Sleep(time.Minute) // In the bubble.
		if objs, revision, _ := c.Snapshot(); len(objs) != 1 || revision != 2 || objs[0].Meta.Name != "kept" {
			t.Errorf("copy %v at %d", versions(objs), revision)
		}
	})
}

// backwards is a store whose reads, except for running watches, switch to another
// store.
type backwards struct {
	*memory.Store
	old  *memory.Store
	gone atomic.Bool
}

func (b *backwards) now() *memory.Store {
	if b.gone.Load() {
		return b.old
	}
	return b.Store
}

func (b *backwards) Count(ctx context.Context) (int, int64, error) { return b.now().Count(ctx) }

func (b *backwards) List(ctx context.Context, scope store.Scope, opts store.ListOptions) (*store.List, error) {
	return b.now().List(ctx, scope, opts)
}

func (b *backwards) Watch(ctx context.Context, scope store.Scope, after int64) (store.Watcher, error) {
	return b.now().Watch(ctx, scope, after)
}
