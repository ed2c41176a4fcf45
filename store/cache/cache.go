// Package cache keeps a local copy of any store. It lists the store, then watches from
// the list's revision. A user's program uses it as an informer. The server answers
// every read from it:
//
//	source ──list, watch──▶ feed ──▶ index, change log ──▶ Get, List, Watch
//	                                       │
//	                                       └──▶ handlers, Snapshot, Since
//
//	feed.go       follows the source through disconnects and compaction
//	apply.go      applies the changes of the feed if they follow from the copy
//	statuses.go   the statuses that the source keeps, on the objects of the copy
//	replay.go     brings the copy from the past to the present at the start
//	recall.go     the changes of a list's revision, for watches that stopped inside it
//	audit.go      compares the copy with the source, in case the feed lost changes
//	reader.go     the cache as a store.Reader
//	watch.go      watches over the recent changes in memory
//	readindex.go  linearizable reads from memory
//	handler.go    Add, Update and Delete calls
//	since.go      what changed between two revisions
//	lastgood.go   what proxies follow in place of values that cannot be read
//	lag.go        how far the copy is behind the source
//
// The cache has one watch of the source, regardless of how many watch the cache. If the
// source implements store.Rewinder, the cache follows it from as far back as the change log
// reaches. So a watch that resumes after a restart finds in memory the changes that it
// missed.
//
// A change is applied once and atomically: readers see whole revisions.
package cache

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

// DefaultWindow is the approximate number of changes that are kept for watches and
// lists of the past if Options do not set it. store.ChangeLogBytes bounds them too.
const DefaultWindow = 50_000

// Options configure a cache.
type Options struct {
	Log *slog.Logger
	// Window is the approximate number of changes kept in memory for watches and lists
	// of the past. 0 means DefaultWindow.
	Window int
}

// Cache is a local copy of a store. All methods are safe for concurrent use. It does
// nothing before Run.
type Cache struct {
	source    store.Reader
	window    int // number of changes kept
	log       *slog.Logger
	readIndex *readIndex
	changes   *store.ChangeLog // its revision is the copy's revision
	relists   atomic.Int64
	statuses  atomic.Bool   // the source keeps statuses, and readers see them
	pastLists chan struct{} // a slot for each list being read from the source

	mu    sync.RWMutex
	index store.Index
	// The source counts unreadable values, but the index does not have them.
	unreadable store.UnreadableSet
	good       lastGood
	// relisted is the newest revision that the copy had before the last full list. No
	// changes lead from that state to the present one. This also holds if the source
	// reaches that revision again after it was restored.
	relisted int64
	changed  chan struct{}
	feed     store.Watcher // the running watch of the source, nil if there is none
	handlers []registration
	running  func(registration) // starts a handler, nil before Run
	trouble  error              // why the source is not followed now

	syncAt int64         // the copy is complete for the first time at this revision
	synced chan struct{} // closed when the copy is complete for the first time
}

// New returns a cache of everything in a store.
func New(source store.Reader, opts Options) *Cache {
	if opts.Window == 0 {
		opts.Window = DefaultWindow
	}
	return &Cache{
		source:    source,
		window:    opts.Window,
		log:       opts.Log,
		readIndex: newReadIndex(source),
		pastLists: make(chan struct{}, maxPastLists),
		changes:   store.NewChangeLog(0, opts.Window),
		changed:   make(chan struct{}),
		synced:    make(chan struct{}),

		unreadable: store.NewUnreadableSet(nil),
	}
}

// Run follows the source and calls handlers until ctx ends, and returns ctx's error. It
// logs failures of the source and retries. Call it once.
func (c *Cache) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return c.follow(ctx) })
	c.startHandlers(func(r registration) {
		group.Go(func() error { return c.serve(ctx, r) })
	})
	defer c.startHandlers(func(registration) {}) // No handler is called after Run.
	return group.Wait()
}

// HasSynced reports whether the copy has ever been complete, that is, as new as the source
// was at the first read. It stays true.
func (c *Cache) HasSynced() bool {
	select {
	case <-c.synced:
		return true
	default:
		return false
	}
}

// WaitForSync waits until HasSynced is true. If ctx ends first, it returns an error.
func (c *Cache) WaitForSync(ctx context.Context) error {
	select {
	case <-c.synced:
		return nil
	case <-ctx.Done():
		return &store.Error{Kind: store.ErrUnavailable, Detail: "the store has not been read yet", Cause: ctx.Err()}
	}
}

// Err returns why the source cannot be followed at present: the error of the last try.
// It is nil while a watch runs, and before the first try.
func (c *Cache) Err() error {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.trouble
}

// Relists returns the number of full lists after the first one. Each happened because
// the feed had lost its position or had missed changes.
func (c *Cache) Relists() int64 { return c.relists.Load() }

// Snapshot returns every object at one revision, in list order. ok is false until
// HasSynced. The caller owns the slice.
func (c *Cache) Snapshot() (objs []*schema.Object, revision int64, ok bool) {
	if !c.HasSynced() {
		return nil, 0, false
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	objs = withoutStatuses(c.index.List(store.Scope{}))
	for _, o := range c.good.objects {
		objs = append(objs, o)
	}
	return objs, c.changes.Revision(), true
}

// Changed returns a channel that is closed at the next change of any object after the
// call, and when the copy is complete for the first time.
func (c *Cache) Changed() <-chan struct{} {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.changed
}

// objects returns the cached objects in scope and the revision that they reflect.
func (c *Cache) objects(scope store.Scope) ([]*schema.Object, int64) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.index.List(scope), c.changes.Revision()
}

// backoff is the delay between retries. It grows from firstWait to mostWait, and
// success resets it.
type backoff struct{ wait time.Duration }

const (
	firstWait = 50 * time.Millisecond
	mostWait  = 2 * time.Second
)

func (b *backoff) reset() { b.wait = 0 }

// pause waits, longer each time. It returns false if ctx ended.
func (b *backoff) pause(ctx context.Context) bool {
	b.wait = min(max(2*b.wait, firstWait), mostWait)
	select {
	case <-time.After(b.wait):
		return true
	case <-ctx.Done():
		return false
	}
}
