// Package cache keeps a local view of any store: it lists, then watches from
// the list's revision. It is the informer of a user's program, and in the
// server it answers every read:
//
//	source ──list, watch──▶ feed ──▶ index, change log ──▶ Get, List, Watch
//	                                       │
//	                                       └──▶ handlers, Snapshot, Since
//
//	feed.go       follows the source through disconnects and compaction
//	apply.go      brings in what the feed tells, if it follows from what is known
//	recall.go     what the revision of a list changed, for who broke off in it
//	audit.go      holds the view against the source, in case the feed is wrong
//	reader.go     the cache as a store.Reader
//	watch.go      watches over the recent changes in memory
//	readindex.go  how a read from memory is still linearizable
//	handler.go    Add, Update and Delete calls
//	since.go      what has changed between two revisions
//	lastgood.go   what proxies follow in place of values that cannot be read
//	lag.go        how far the view is behind the source
//
// There is one watch of the source, however many watch the cache. A source that
// can be rewound is followed from as far back as the change log reaches, so that
// watches which resume after a restart find in memory what they missed.
//
// A change is applied once and in one step: whoever reads sees whole revisions.
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

// DefaultWindow is about how many changes are kept for watches and lists of
// the past, if Options do not say; store.ChangeLogBytes bounds them too.
const DefaultWindow = 50_000

// Options of a cache.
type Options struct {
	Log *slog.Logger
	// Window is about how many changes are kept in memory for watches and
	// lists of the past; 0 is DefaultWindow.
	Window int
}

// Cache is a local view of a store. All methods are safe for concurrent use.
// It does nothing before Run.
type Cache struct {
	source    store.Reader
	window    int // changes kept
	log       *slog.Logger
	readIndex *readIndex
	changes   *store.ChangeLog // its revision is that of the view
	relists   atomic.Int64
	pastLists chan struct{} // a slot for each that is read from the source

	mu    sync.RWMutex
	index store.Index
	// unreadable values are counted by the source, but not in the index.
	unreadable store.UnreadableSet
	good       lastGood
	// relisted is the newest revision that the view had before all was listed
	// anew. What somebody knows of it does not lead to the present by changes,
	// also if the source goes there once more after it was restored.
	relisted int64
	changed  chan struct{}
	feed     store.Watcher // the running watch of the source, nil without one
	handlers []registration
	running  func(registration) // starts a handler, nil before Run
	trouble  error              // why the source is not followed now

	syncAt int64         // the revision at which the view is complete for the first time
	synced chan struct{} // closed when it is
}

// New makes a cache of everything in a store.
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

// Run follows the source and calls handlers until ctx ends, and returns its
// error. Trouble with the source is logged and tried again. Call it once.
func (c *Cache) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return c.follow(ctx) })
	c.startHandlers(func(r registration) {
		group.Go(func() error { return c.serve(ctx, r) })
	})
	defer c.startHandlers(func(registration) {}) // None is called after Run.
	return group.Wait()
}

// HasSynced reports whether the view has once been complete: as new as the
// source was when it was first read. It stays true.
func (c *Cache) HasSynced() bool {
	select {
	case <-c.synced:
		return true
	default:
		return false
	}
}

// WaitForSync returns once HasSynced, or with ctx's error.
func (c *Cache) WaitForSync(ctx context.Context) error {
	select {
	case <-c.synced:
		return nil
	case <-ctx.Done():
		return &store.Error{Kind: store.ErrUnavailable, Detail: "the store has not been read yet", Cause: ctx.Err()}
	}
}

// Err is why the source cannot be followed at present: what the last try
// failed with. It is nil while a watch runs, and before the first try.
func (c *Cache) Err() error {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.trouble
}

// Relists is how often all was listed anew since the first time, because the
// feed had lost its place, or was found to have missed something.
func (c *Cache) Relists() int64 { return c.relists.Load() }

// Snapshot returns every object at one revision, in the order of lists; ok is
// false until HasSynced. The slice is the caller's.
func (c *Cache) Snapshot() (objs []*schema.Object, revision int64, ok bool) {
	if !c.HasSynced() {
		return nil, 0, false
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	objs = c.index.List(store.Scope{})
	for _, o := range c.good.of {
		objs = append(objs, o)
	}
	return objs, c.changes.Revision(), true
}

// Changed is closed at the next change of any object after the call, and when
// the view is complete for the first time.
func (c *Cache) Changed() <-chan struct{} {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.changed
}

// view is what the cache holds in a scope, and the revision it reflects.
func (c *Cache) view(scope store.Scope) ([]*schema.Object, int64) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.index.List(scope), c.changes.Revision()
}

// backoff is the pace of trying again, from first to most, reset by success.
type backoff struct{ wait time.Duration }

const (
	firstWait = 50 * time.Millisecond
	mostWait  = 2 * time.Second
)

func (b *backoff) reset() { b.wait = 0 }

// pause waits, longer each time; false means that ctx ended.
func (b *backoff) pause(ctx context.Context) bool {
	b.wait = min(max(2*b.wait, firstWait), mostWait)
	select {
	case <-time.After(b.wait):
		return true
	case <-ctx.Done():
		return false
	}
}
