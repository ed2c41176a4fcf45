package etcd

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

// History implements store.Historian.
func (s *Store) History(ctx context.Context, key schema.Key) ([]store.Version, error) {
	name, ok := s.keys.of(key)
	if !ok {
		return nil, &store.Error{Kind: store.ErrNotFound, Key: key}
	}
	if err := s.isOpen(ctx); err != nil {
		return nil, err
	}
	resp, err := s.client.Txn(ctx).Then(clientv3.OpGet(name), s.records(name)).Commit()
	if err != nil {
		return nil, translate(err, key)
	}
	records := entries(s.keys, s.kept(resp.Responses[1].GetResponseRange().Kvs))
	var current *schema.Object
	for _, kv := range resp.Responses[0].GetResponseRange().Kvs {
		if current, err = s.keys.object(kv, kv.ModRevision); err != nil {
			current = nil // To readers it is not there.
		}
	}
	versions := store.Versions(records, current)
	if len(versions) == 0 {
		return nil, &store.Error{Kind: store.ErrNotFound, Key: key}
	}
	return versions, nil
}

// records reads the records of one object, the oldest first.
func (s *Store) records(objectKey string) clientv3.Op {
	return clientv3.OpGet(s.keys.historyOf(objectKey), clientv3.WithPrefix(),
		clientv3.WithSort(clientv3.SortByModRevision, clientv3.SortAscend))
}

// kept are the newest of an object's records: there may be more for a while.
func (s *Store) kept(records []*mvccpb.KeyValue) []*mvccpb.KeyValue {
	return records[max(0, len(records)-s.limits.History):]
}

func entries(l layout, kvs []*mvccpb.KeyValue) []store.Record {
	var out []store.Record
	for _, kv := range kvs {
		out = append(out, l.entry(kv))
	}
	return out
}

// Changes implements store.Historian. It reads at one revision of etcd.
func (s *Store) Changes(ctx context.Context, scope store.Scope, revision int64) ([]store.Difference, error) {
	newest, now, err := s.clock(ctx)
	switch {
	case err != nil:
		return nil, err
	case revision > newest:
		return nil, &store.Error{Kind: store.ErrFuture, Detail: fmt.Sprintf("revision %d is not reached, the newest is %d", revision, newest)}
	}
	touched, err := s.touchedSince(ctx, scope, revision, now)
	if err != nil {
		return nil, err
	}
	var out []store.Difference
	for _, name := range touched {
		d, err := s.difference(ctx, name, revision, now)
		if err != nil {
			return nil, err
		}
		out = append(out, d)
	}
	store.SortDifferences(out)
	return out, nil
}

// touchedSince is the keys of the objects that changed after a revision.
func (s *Store) touchedSince(ctx context.Context, scope store.Scope, revision, now int64) ([]string, error) {
	found := make(map[string]bool)
	for _, prefix := range s.historySpans(scope) {
		resp, err := s.client.Get(ctx, prefix, clientv3.WithPrefix(), clientv3.WithKeysOnly(),
			clientv3.WithRev(now), clientv3.WithMinModRev(revision+1))
		if err != nil {
			return nil, translate(err, schema.Key{})
		}
		for _, kv := range resp.Kvs {
			prefix, _ := cutLast(string(kv.Key))
			found[s.keys.objectOf(prefix)] = true
		}
	}
	if len(found) > store.MaxTxnOps {
		return nil, &store.Error{Kind: store.ErrTooLarge, Detail: fmt.Sprintf(
			"%d objects have changed since revision %d; at most %d can be compared at once", len(found), revision, store.MaxTxnOps)}
	}
	return slices.Collect(maps.Keys(found)), nil
}

// historySpans are the prefixes under which the records of a scope lie.
func (s *Store) historySpans(scope store.Scope) []string {
	kinds := schema.Kinds()
	if scope.Kind != nil {
		kinds = []*schema.Kind{scope.Kind}
	}
	var out []string
	for _, kind := range kinds {
		prefix := s.keys.history + strings.TrimPrefix(s.keys.kind(kind), s.keys.objects)
		for _, part := range []string{scope.Namespace, scope.Name} {
			if part == "" {
				break
			}
			prefix += part + "/"
		}
		out = append(out, prefix)
	}
	return out
}

// difference compares one object, named by its key in etcd.
func (s *Store) difference(ctx context.Context, name string, revision, now int64) (store.Difference, error) {
	key, ok := s.keys.parse(name)
	if !ok {
		return store.Difference{}, fmt.Errorf("a record of what is no object: %s", name)
	}
	d := store.Difference{Key: key}
	resp, err := s.client.Txn(ctx).Then(
		clientv3.OpGet(name, clientv3.WithRev(now)),
		clientv3.OpGet(s.keys.historyOf(name), clientv3.WithPrefix(), clientv3.WithRev(now),
			clientv3.WithSort(clientv3.SortByModRevision, clientv3.SortAscend)),
		clientv3.OpGet(s.keys.floor),
	).Commit()
	if err != nil {
		return d, translate(err, key)
	}
	for _, kv := range resp.Responses[0].GetResponseRange().Kvs {
		if d.Now, err = s.keys.object(kv, kv.ModRevision); err != nil {
			return d, &store.Error{Kind: store.ErrExpired, Key: key, Cause: err, Detail: "what is stored under the name cannot be read"}
		}
	}
	records := resp.Responses[1].GetResponseRange().Kvs
	first := slices.IndexFunc(records, func(kv *mvccpb.KeyValue) bool { return kv.ModRevision > revision })
	if first < 0 {
		return d, &store.Error{Kind: store.ErrExpired, Key: key, Detail: "its history does not reach back to that revision"}
	}
	complete := first > 0 || len(records) < s.limits.History && revision >= floorOf(resp.Responses[2].GetResponseRange().Kvs)
	d.Then, err = s.keys.entry(records[first]).Then(key, revision, complete)
	return d, err
}

// floorOf is the newest revision of which records may be gone though there are
// few of their object; what cannot be read is all revisions.
func floorOf(kvs []*mvccpb.KeyValue) int64 {
	if len(kvs) == 0 {
		return 0
	}
	n, err := strconv.ParseInt(string(kvs[0].Value), 10, 64)
	if err != nil {
		return math.MaxInt64
	}
	return n
}
