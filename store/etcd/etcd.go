// Package etcd keeps the contract of package store on etcd, embedded or not.
// It is the only package of the project that knows etcd:
//
//	etcd.go      the Store: reads (list.go: lists and their pages)
//	clock.go     its revision, and how far back it can be read
//	write.go     create, update, delete, transactions: one etcd Txn each
//	history.go   what is noted of each change (historyread.go: what an object
//	             was; historychanges.go: what has changed since,
//	             historywalk.go: of however many objects;
//	             historykeep.go: what is forgotten of it;
//	             historylimit.go: how many are surely there)
//	guess.go     what spares a write from reading first (turns.go: who changes
//	             one object waits for who does already)
//	watch.go     etcd's watch as whole revisions (assist.go: what it must ask;
//	             echoes.go: what it need not decode)
//	events.go    what its changes mean to readers
//	keys.go      how keys are spelled, so that every scope is one range
//	             (prefix.go: which prefix is a wrong one)
//	values.go    reading values, and what to do with one that cannot be read
//	errors.go    what etcd's errors mean
//	embedded.go  an etcd inside this process (lock.go: one process per folder;
//	             inspect.go, failure.go: data and disks that are broken;
//	             zaplog.go: what it logs)
//	keeper.go    keeps it in its bounds: ledger.go knows what it holds,
//	             retention.go what may go, quota.go what may come, raftlog.go
//	             bounds the log, defragment.go takes back the file's holes
//	snapshot.go  all that it holds as one file (restore.go: back again)
//	external.go  a client for an etcd elsewhere (alarm.go: does it take writes?)
//	migrate.go   from one etcd into another (migratesource.go: what it reads)
//	replicas.go  who shares the store (membership.go: to be one of them;
//	             neighbours.go: what is wrong with the others)
//
// A value is schema.Object.Encoded: the whole object without resourceVersion,
// which is etcd's ModRevision of the key. One transaction of the store is one
// transaction of etcd, and so one revision.
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
)

// Store keeps objects in etcd, under a prefix. Requests are bounded by their
// contexts alone.
type Store struct {
	store.Verbs
	client *clientv3.Client
	keys   layout
	log    *slog.Logger
	turns  turns

	guesses guesses
	echoes  echoes
	adrift  atomic.Int64 // see clock.go
	memory  mvcc.KV      // of an etcd that is one member, in this process; else nil
	open    atomic.Bool  // no migration fills it
	limits  Limits
	surplus surplus // see historykeep.go
}

// Limits are what a Store takes and keeps.
type Limits struct {
	// History is how many records of each object are kept, 0 for none.
	History int
	// Ops is how many operations a transaction may have. etcd must take twice
	// as many requests, and one more (--max-txn-ops).
	Ops int
}

// DefaultLimits are for an etcd with its own defaults, EmbeddedLimits for an
// embedded one.
var (
	DefaultLimits  = Limits{History: 10, Ops: 63}
	EmbeddedLimits = Limits{History: 10, Ops: 1000}
)

var (
	_ store.Interface  = (*Store)(nil)
	_ store.Rewinder   = (*Store)(nil)
	_ store.Timekeeper = (*Store)(nil)
	_ store.Counter    = (*Store)(nil)
)

// New uses a client that stays the caller's to close. An object in etcd that
// cannot be read is logged and left out of lists and watches, which say so
// (store.Unreadable), so that it never blocks the others; who asks for it gets
// ErrUnreadable. It can be deleted, and an update with a whole object replaces it.
func New(client *clientv3.Client, prefix string, log *slog.Logger) *Store {
	s := &Store{client: client, keys: newLayout(prefix), log: log, limits: DefaultLimits}
	s.Verbs = store.VerbsOf(s.Txn)
	return s
}

// Limit sets other limits than DefaultLimits. To be called before the first
// write.
func (s *Store) Limit(l Limits) { s.limits = l }

// Get implements store.Reader.
func (s *Store) Get(ctx context.Context, key schema.Key, opts store.ReadOptions) (*schema.Object, error) {
	name, ok := s.keys.of(key)
	if !ok {
		return nil, &store.Error{Kind: store.ErrNotFound, Key: key}
	}
	found, _, err := s.read(ctx, name, opts.AtLeast)
	if err != nil {
		return nil, translate(err, key)
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

// retryRead is how often a read asks again that wants a revision which etcd has
// not reached. Only a store restored from an old copy makes that happen.
const retryRead = 50 * time.Millisecond

// read is one range, and the revision of the store that it reflects: at least
// the wanted one, in the sense of store.ReadOptions.
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
			// Nothing of the store changed between its head and what is
			// asked for, if that is later.
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

// newestOf is later than the head only when somebody else wrote.
func newestOf(kvs []*mvccpb.KeyValue) int64 {
	newest := int64(0)
	for _, kv := range kvs {
		newest = max(newest, kv.ModRevision)
	}
	return newest
}
