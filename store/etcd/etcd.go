// Package etcd implements the contract of package store on etcd, embedded or external.
// Only this package and the packages beneath it use etcd:
//
//	etcd.go      the Store: reads (list.go: lists and their pages)
//	clock.go     the revision, and how far back it can be read
//	write.go     create, update, delete, transactions: one etcd Txn each
//	history.go   the record of each change (historyread.go: the versions of an
//	             object; historychanges.go: what changed since a revision,
//	             historywalk.go: for any number of objects;
//	             historykeep.go: which records are dropped;
//	             historylimit.go: how many are certainly kept)
//	optimistic.go
//	             lets a write skip its read (writerqueues.go: queues the writers that
//	             change one object by function)
//	watch.go     etcd's watch as whole revisions (watchprogress.go: the requests
//	             that it needs; pendingwrites.go: the objects that it need not
//	             decode)
//	events.go    etcd's changes as readers see them
//	statuses.go  the statuses that the store keeps (statuspage.go: their encoding;
//	             statuswriter.go: writes status revisions)
//	keys.go      the layout of keys, in which every scope is one range
//	             (prefix.go: detects a wrong prefix)
//	values.go    decodes values, and handles those that cannot be read
//	errors.go    translates etcd's errors
//	admit.go     asks an etcd with a quota before a write
//	restore.go   a snapshot back into a data folder (settings.go: the settings of
//	             the mesh, which a snapshot has too)
//	external.go  a client for an external etcd (alarm.go: does it accept writes?)
//	migrate.go   copies one etcd into another (migratesource.go: reads the source)
//	trouble.go   says a repeated error once
//
// Package embedded below it has the etcd inside this process.
//
// A value is schema.Object.Encoded: the whole object without resourceVersion, which is
// etcd's ModRevision of the key. One transaction of the store is one transaction of
// etcd, and so one revision.
package etcd

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/storage/mvcc"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
	"github.com/pilot-api/pilot-api/store/etcd/embedded"
)

// Store keeps objects in etcd, under a prefix. Only their contexts limit the duration
// of requests.
type Store struct {
	store.Verbs
	client  *clientv3.Client
	keys    layout
	log     *slog.Logger
	writers writerQueues

	optimistic    optimisticState
	pendingWrites pendingWrites
	adrift        atomic.Int64 // see clock.go
	memory        mvcc.KV      // of an etcd that is a single member in this process; else nil
	open          atomic.Bool  // no migration fills it
	limits        Limits
	surplus       surplus // see historykeep.go
}

// Limits are the limits of a Store.
type Limits struct {
	// History is the number of records kept for each object; 0 means none.
	History int
	// Ops is the maximum number of operations in a transaction. etcd must accept twice
	// as many requests, and one more (--max-txn-ops).
	Ops int
}

// DefaultLimits suit an etcd with its own defaults; EmbeddedLimits suit an embedded
// etcd.
var (
	DefaultLimits  = Limits{History: 10, Ops: 63}
	EmbeddedLimits = Limits{History: 10, Ops: 1000}
)

var (
	_ store.Interface    = (*Store)(nil)
	_ store.Rewinder     = (*Store)(nil)
	_ store.Timekeeper   = (*Store)(nil)
	_ store.Counter      = (*Store)(nil)
	_ store.StatusKeeper = (*Store)(nil)
)

// New returns a store on a client, which the caller closes. An object in etcd that cannot
// be read never blocks the others: it is logged, and lists and watches leave it out and
// report it (store.Unreadable). A request for it gets ErrUnreadable. A delete removes it,
// and an update with a whole object replaces it.
func New(client *clientv3.Client, prefix string, log *slog.Logger) *Store {
	s := &Store{client: client, keys: newLayout(prefix), log: log, limits: DefaultLimits}
	s.Verbs = store.VerbsOf(s.Txn)
	return s
}

// NewEmbedded returns a store on an embedded etcd, with EmbeddedLimits. It drops history if
// the present state needs the space. Use one Store per etcd, because several do not know of
// each other's records.
func NewEmbedded(e *embedded.Etcd, prefix string, log *slog.Logger) *Store {
	s := New(e.Client(), prefix, log)
	s.Limit(EmbeddedLimits)
	s.memory = e.State()
	e.WhenCrowded(s.giveWay)
	return s
}

// Limit replaces DefaultLimits. Call it before the first write.
func (s *Store) Limit(l Limits) { s.limits = l }

// Get implements store.Reader.
func (s *Store) Get(ctx context.Context, key schema.Key, opts store.ReadOptions) (*schema.Object, error) {
	name, ok := s.keys.of(key)
	if !ok {
		return nil, &store.Error{Kind: store.ErrNotFound, Key: key}
	}
	found, _, err := s.read(ctx, name, opts.AtLeast)
	if err != nil {
		return nil, translate("get", err, key)
	}
	if len(found.Kvs) == 0 {
		return nil, &store.Error{Kind: store.ErrNotFound, Key: key}
	}
	obj, err := s.keys.object(found.Kvs[0], found.Kvs[0].ModRevision)
	if err != nil {
		return nil, s.keys.unreadable(found.Kvs[0], err).Err()
	}
	return obj, nil
}

// retryRead is the delay before a read retries for a revision that etcd has not
// reached. This happens only after the store was restored from an old copy.
const retryRead = 50 * time.Millisecond

// read returns one range and the revision of the store that it reflects, which is at
// least atLeast in the sense of store.ReadOptions.
func (s *Store) read(ctx context.Context, key string, atLeast int64, span ...clientv3.OpOption) (*clientv3.GetResponse, int64, error) {
	var fresh []clientv3.OpOption
	if atLeast == store.Any {
		fresh = append(fresh, clientv3.WithSerializable())
	}
	reads := []clientv3.Op{clientv3.OpGet(s.keys.head, fresh...), clientv3.OpGet(key, append(span, fresh...)...)}
	for {
		resp, err := s.client.Txn(ctx).Then(reads...).Commit()
		if err != nil {
			return nil, 0, err
		}
		head, found := resp.Responses[0].GetResponseRange().Kvs, (*clientv3.GetResponse)(resp.Responses[1].GetResponseRange())
		switch {
		case len(head) == 0:
			if _, err := s.startClock(ctx); err != nil {
				return nil, 0, err
			}
			continue
		case resp.Header.Revision >= atLeast:
			// The store did not change between its head and the requested revision, if
			// that is later.
			return found, max(s.reading(head[0].ModRevision, resp.Header.Revision), atLeast, newestOf(found.Kvs)), nil
		}
		select {
		case <-time.After(retryRead):
		case <-ctx.Done():
			late := store.NotReached(atLeast, resp.Header.Revision)
			late.Cause = ctx.Err()
			return nil, 0, late
		}
	}
}

// newestOf returns the newest revision of kvs. It is later than the head only if
// another program wrote.
func newestOf(kvs []*mvccpb.KeyValue) int64 {
	newest := int64(0)
	for _, kv := range kvs {
		newest = max(newest, kv.ModRevision)
	}
	return newest
}
