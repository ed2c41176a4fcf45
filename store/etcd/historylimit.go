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

// kept is the minimum number of records that every server so far has left of each
// object, for changes after the revision since. An object with fewer records has all
// the records that it ever had, except those up to the floor.
//
// It has a key of its own because a server does not know what others have kept: they
// may run before it or beside it with another --history.
type kept struct {
	records int
	since   int64
}

// keptOf decodes the number and the revision, or the number alone, which counts from
// the revision that put it. Without a value no record was deleted yet. A value that
// cannot be read promises nothing.
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

// errKept means that another server has meanwhile recorded another number.
var errKept = &store.Error{Kind: store.ErrUnavailable, Detail: "another server keeps another number of records (--history)"}

// agree records that this server keeps fewer records than the stored number. With raise
// it also records that it keeps more, which holds from now on. It returns the condition
// for deleting surplus records: the stored number has not changed since.
func (s *Store) agree(ctx context.Context, raise bool) (clientv3.Cmp, error) {
	var none clientv3.Cmp
	resp, err := s.client.Get(ctx, s.keys.kept)
	if err != nil {
		return none, translate("read the limits of the history", err, schema.Key{})
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
		return none, translate("read the limits of the history", err, schema.Key{})
	case !done.Succeeded:
		return none, errKept
	}
	return clientv3.Compare(clientv3.ModRevision(s.keys.kept), "=", done.Header.Revision), nil
}

// reach returns how far back an object's records are complete, given their number.
func (s *Store) reach(records int, k kept, floor int64) store.Reach {
	if records >= min(k.records, s.limits.History) {
		return store.Reach{Floor: floor}
	}
	return store.Reach{Floor: floor, Oldest: max(1, k.since, floor)}
}
