package etcd

import (
	"context"
	"errors"
	"sort"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/pkg/v3/traceutil"
	"go.etcd.io/etcd/server/v3/storage/mvcc"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

// The clock of the store is etcd's revision at the store's own last change. Every
// transaction puts one key, the head, so the head's ModRevision is the clock. Reading
// it is a linearizable answer of a few bytes, and the watch of all changes has an event
// at that revision. So a watch knows how far it has come from its own events alone; see
// docs/decisions/014-one-feed.md.

// tick returns the operation that moves the clock. Every transaction contains it.
func (l layout) tick() clientv3.Op { return clientv3.OpPut(l.head, "") }

// Revision implements store.Reader.
func (s *Store) Revision(ctx context.Context) (int64, error) {
	revision, _, err := s.clock(ctx)
	return revision, err
}

// Now implements store.Timekeeper. If etcd is a single member in this process, its
// memory holds every revision that was ever acknowledged or read.
func (s *Store) Now(ctx context.Context) (revision int64, ok bool) {
	if s.memory == nil {
		return 0, false
	}
	read := s.memory.Read(mvcc.SharedBufReadTxMode, traceutil.TODO())
	defer read.End()
	found, err := read.Range(ctx, []byte(s.keys.head), nil, mvcc.RangeOptions{})
	if err != nil || len(found.KVs) == 0 {
		return 0, false
	}
	return s.reading(found.KVs[0].ModRevision, found.Rev), true
}

// clock returns the revision of the store and that of all of etcd. They differ because
// other programs may write to etcd too.
func (s *Store) clock(ctx context.Context) (revision, etcd int64, err error) {
	resp, err := s.client.Get(ctx, s.keys.head)
	switch {
	case err != nil:
		return 0, 0, translate("read the revision", err, schema.Key{})
	case len(resp.Kvs) == 0:
		revision, err = s.startClock(ctx)
		s.open.Store(err == nil)
		return revision, revision, err
	}
	s.open.Store(true)
	return s.reading(resp.Kvs[0].ModRevision, resp.Header.Revision), resp.Header.Revision, nil
}

// reading returns the clock for a head and an etcd revision. It counts a change that
// another program made without the clock as soon as a watch of this process has
// delivered it, even if the head could not be moved past it yet. Otherwise that event
// would be ahead of the store.
func (s *Store) reading(head, etcd int64) int64 {
	if adrift := s.adrift.Load(); adrift <= etcd {
		return max(head, adrift)
	}
	return head // etcd was restored from an older copy.
}

// startClock puts the head of a store that has none: a new store, or one from a version
// without heads. A store that a migration fills gets its head when the migration
// finishes.
func (s *Store) startClock(ctx context.Context) (int64, error) {
	resp, err := s.client.Txn(ctx).
		If(s.keys.absent(s.keys.head), s.keys.absent(s.keys.migration)).
		Then(s.keys.tick()).
		Else(clientv3.OpGet(s.keys.head)).
		Commit()
	switch {
	case err != nil:
		return 0, translate("read the revision", err, schema.Key{})
	case resp.Succeeded:
		return resp.Header.Revision, nil
	}
	for _, head := range resp.Responses[0].GetResponseRange().Kvs {
		return head.ModRevision, nil
	}
	return 0, errFilling
}

var errFilling = &store.Error{Kind: store.ErrUnavailable, Detail: "objects are being brought here by 'pilot-api migrate', which is not finished: if it does not run any more, run it again"}

// isOpen returns an error while a migration fills the store. Only a store with a head
// is known to be open: a migration may begin as long as the head is missing.
func (s *Store) isOpen(ctx context.Context) error {
	if s.open.Load() {
		return nil
	}
	_, _, err := s.clock(ctx)
	return err
}

// drift records a change that was made without the clock.
func (s *Store) drift(revision int64) {
	for known := s.adrift.Load(); known < revision; known = s.adrift.Load() {
		if s.adrift.CompareAndSwap(known, revision) {
			return
		}
	}
}

// adopt moves the head of the clock past the recorded drift, if there is any.
func (s *Store) adopt(ctx context.Context) error {
	revision := s.adrift.Load()
	if revision == 0 {
		return nil
	}
	_, err := s.client.Txn(ctx).
		If(clientv3.Compare(clientv3.ModRevision(s.keys.head), "<", revision)).
		Then(s.keys.tick()).
		Commit()
	if err == nil {
		s.adrift.CompareAndSwap(revision, 0)
	}
	return err
}

// Rewind implements store.Rewinder. etcd does not report how far back it keeps changes. It
// reports only whether it still has a given revision, so Rewind searches for the oldest
// one.
func (s *Store) Rewind(ctx context.Context, to int64) (int64, error) {
	newest, err := s.Revision(ctx)
	if err != nil || to >= newest {
		return newest, err
	}
	to = max(to, 1)
	steps := sort.Search(int(newest-to), func(i int) bool {
		var kept bool
		if err == nil {
			kept, err = s.keeps(ctx, to+int64(i))
		}
		return kept
	})
	return to + int64(steps), err
}

// keeps reports whether the state at a revision can still be read.
func (s *Store) keeps(ctx context.Context, revision int64) (bool, error) {
	_, err := s.client.Get(ctx, s.keys.head, clientv3.WithRev(revision))
	if errors.Is(err, rpctypes.ErrCompacted) {
		return false, nil
	}
	return err == nil, translate("read the revision", err, schema.Key{})
}

// Count implements store.Counter.
func (s *Store) Count(ctx context.Context) (count int, revision int64, err error) {
	resp, err := s.client.Txn(ctx).Then(
		clientv3.OpGet(s.keys.head),
		clientv3.OpGet(s.keys.objects, clientv3.WithPrefix(), clientv3.WithCountOnly()),
	).Commit()
	if err != nil {
		return 0, 0, translate("read the revision", err, schema.Key{})
	}
	for _, head := range resp.Responses[0].GetResponseRange().Kvs {
		revision = s.reading(head.ModRevision, resp.Header.Revision)
	}
	return int(resp.Responses[1].GetResponseRange().Count), revision, nil
}
