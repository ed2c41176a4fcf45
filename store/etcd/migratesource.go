package etcd

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// entry is a key of the source and the revision that put it.
type entry struct {
	key      string
	revision int64
}

// content returns the prefixes that are copied.
func (l layout) content() []string { return []string{l.objects, l.history} }

// survey returns all entries of the source at one revision, in the order in which they
// were put. An object is next to its record.
func (r *migrating) survey(ctx context.Context) (entries []entry, err error) {
	bounds, err := r.From.Txn(ctx).Then(clientv3.OpGet(r.keys.floor), clientv3.OpGet(r.keys.kept)).Commit()
	if err != nil {
		return nil, err
	}
	r.at = bounds.Header.Revision
	r.known = moved{floorOf(bounds.Responses[0].GetResponseRange().Kvs), r.begun}
	r.kept = keptOf(bounds.Responses[1].GetResponseRange().Kvs)
	r.more = moved{r.kept.since, r.begun}
	for _, prefix := range r.keys.content() {
		err := r.eachPage(ctx, prefix, func(kv *mvccpb.KeyValue) {
			entries = append(entries, entry{string(kv.Key), kv.ModRevision})
		})
		if err != nil {
			return nil, err
		}
	}
	slices.SortFunc(entries, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.revision, b.revision), strings.Compare(r.keys.objectNamed(a.key), r.keys.objectNamed(b.key)), strings.Compare(a.key, b.key))
	})
	return entries, nil
}

// eachPage calls f for the keys of the source under a prefix.
func (r *migrating) eachPage(ctx context.Context, prefix string, f func(*mvccpb.KeyValue)) error {
	from, end := prefix, clientv3.GetPrefixRangeEnd(prefix)
	for {
		resp, err := r.From.Get(ctx, from, clientv3.WithRange(end), clientv3.WithKeysOnly(), clientv3.WithRev(r.at), clientv3.WithLimit(migratePage))
		if err != nil {
			return err
		}
		for _, kv := range resp.Kvs {
			f(kv)
		}
		if !resp.More {
			return nil
		}
		from = string(resp.Kvs[len(resp.Kvs)-1].Key) + "\x00"
	}
}

// together returns how many entries were put at the revision of the first one.
func together(entries []entry) int {
	n := slices.IndexFunc(entries, func(e entry) bool { return e.revision != entries[0].revision })
	if n < 0 {
		return len(entries)
	}
	return n
}
