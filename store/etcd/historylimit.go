package etcd

import (
	"context"
	"fmt"
	"math"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

// kept is what all servers that ever were say of the records: of what was changed
// after a revision, none has left fewer of an object than so many. Fewer are all
// that there were, as far as the floor does not say that some are forgotten.
//
// It is a key of its own, for a server does not know what others have kept: it may
// have been started with another --history, after them or beside them.
type kept struct {
	records int
	since   int64
}

// keptOf reads it: the number and the revision, or the number alone for the
// revision that put it. Without one no record was taken away yet; what cannot be
// read says nothing.
func keptOf(kvs []*mvccpb.KeyValue) kept {
	if len(kvs) == 0 {
		return kept{records: math.MaxInt}
	}
	var k kept
	switch n, _ := fmt.Sscan(string(kvs[0].Value), &k.records, &k.since); n {
	case 0:
		return kept{}
	case 1:
		k.since = kvs[0].ModRevision
	}
	return k
}

func (k kept) String() string { return fmt.Sprint(k.records, k.since) }

// errKept: another server has said meanwhile that it keeps another number.
var errKept = &store.Error{Kind: store.ErrUnavailable, Detail: "another server keeps another number of records (--history)"}

// agree says that this server keeps fewer records than is said; with raise also
// that it keeps more, which is true from now on. It returns the condition on which
// surplus may go: nobody has promised more meanwhile.
func (s *Store) agree(ctx context.Context, raise bool) (clientv3.Cmp, error) {
	var none clientv3.Cmp
	resp, err := s.client.Get(ctx, s.keys.kept)
	if err != nil {
		return none, translate(err, schema.Key{})
	}
	said, at := keptOf(resp.Kvs), int64(0)
	for _, kv := range resp.Kvs {
		at = kv.ModRevision
	}
	text := kept{s.limits.History, said.since}.String()
	switch own := s.limits.History; {
	case said.records == own, said.records < own && !raise:
		return clientv3.Compare(clientv3.ModRevision(s.keys.kept), "=", at), nil
	case said.records < own:
		text = fmt.Sprint(own)
	}
	done, err := s.client.Txn(ctx).
		If(clientv3.Compare(clientv3.ModRevision(s.keys.kept), "=", at)).
		Then(clientv3.OpPut(s.keys.kept, text)).Commit()
	switch {
	case err != nil:
		return none, translate(err, schema.Key{})
	case !done.Succeeded:
		return none, errKept
	}
	return clientv3.Compare(clientv3.ModRevision(s.keys.kept), "=", done.Header.Revision), nil
}

// reach is how far back so many records of an object tell of it.
func (s *Store) reach(records int, k kept, floor int64) store.Reach {
	if records >= min(k.records, s.limits.History) {
		return store.Reach{Floor: floor}
	}
	return store.Reach{Floor: floor, Oldest: max(1, k.since, floor)}
}
