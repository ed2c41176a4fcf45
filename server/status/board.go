package status

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/server/replica"
)

// Options configure a Board and a Reporter. Statuses is required.
type Options struct {
	// Statuses computes the statuses of objects over the proxies of this replica. Its
	// argument is its previous result.
	Statuses func(before *discovery.ObjectStatuses) *discovery.ObjectStatuses
	// Peers are the other replicas; nil if there are none.
	Peers replica.Peers
	// ReportPath is the path of the reports of other replicas.
	ReportPath string
	// ProxyReturn is how long from now earlier proxies may take to reconnect.
	ProxyReturn time.Duration
	// OwnNamesOnly makes conditions name only objects and proxies of the namespace of their
	// object. All clients get the same conditions, and some may read only that namespace.
	OwnNamesOnly bool
	Log          *slog.Logger
}

// New returns a Board, with the statuses over the proxies of all replicas, and a Reporter,
// with the report of this replica to the others. Both share the results for this replica's
// proxies.
func New(opts Options) (*Board, *Reporter) {
	own, back := newOwnProbe(opts.Statuses, opts.Log), newProxyReturn(opts.ProxyReturn)
	first := newTable()
	first.ownNamesOnly = opts.OwnNamesOnly
	return newBoard(first, own, back, newPeerReports(opts), opts.Log), &Reporter{own: own, back: back}
}

// Board has the recent statuses of all objects. It refreshes them on request, and
// regularly while there are watches. It is safe for concurrent use. Make it with New.
type Board struct {
	tables *cachedProbe[Table]

	mu       sync.Mutex
	watchers int
	stop     chan struct{} // ends the refreshing for watchers
}

// newBoard returns a board that adds up the statuses of this replica's proxies and those
// that the others report. Some proxies of this replica may be on their way back.
func newBoard(first *Table, proxies *cachedProbe[discovery.ObjectStatuses], back proxyReturn, peers *peerReports, log *slog.Logger) *Board {
	look := func(before *Table, after time.Time) (*Table, time.Duration) {
		begin := time.Now()
		others := peers.look(after)
		waited := time.Since(begin)
		since := after
		if others.moved.After(since) {
			since = others.moved
		}
		own := proxies.after(context.Background(), since)
		if back.due(own.Objects) {
			others.awaited = append(others.awaited, back.awaited())
		}
		others.returning += own.Returning
		return before.next(own, others), waited
	}
	b := &Board{tables: newCachedProbe("statuses of objects", log, first, look)}
	b.tables.tell = func(before, found *Table) {
		if found.version != before.version {
			close(before.changed)
		}
	}
	return b
}

// Recent returns the recent statuses. They are at most Age old, or older if computing them
// takes long.
func (b *Board) Recent() *Table { return b.tables.recent() }

// Refresh makes Recent return a state that is newer than this call, unless ctx ends first.
func (b *Board) Refresh(ctx context.Context) { b.tables.after(ctx, time.Now()) }

// Since returns the objects whose status has changed since a version of the board, and the
// present version. changed is closed when the next version appears.
func (b *Board) Since(version uint64) (keys []schema.Key, present uint64, changed <-chan struct{}) {
	p := b.tables.known()
	switch {
	case version == p.version:
	case version+1 == p.version:
		keys = p.news
	default:
		for key, one := range p.entries {
			if one.version > version {
				keys = append(keys, key)
			}
		}
	}
	return keys, p.version, p.changed
}

// Watch keeps the board refreshed until the returned function is called.
func (b *Board) Watch() (done func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.watchers++; b.watchers == 1 {
		b.stop = make(chan struct{})
		go b.keepLooking(b.stop)
	}
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.watchers--; b.watchers == 0 {
			close(b.stop)
		}
	}
}

func (b *Board) keepLooking(stop <-chan struct{}) {
	tick := time.NewTicker(Age)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return
		case <-tick.C:
			b.Recent()
		}
	}
}
