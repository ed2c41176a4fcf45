package etcd

import (
	"context"
	"slices"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

// History implements store.Historian.
func (s *Store) History(ctx context.Context, key schema.Key) ([]store.Version, error) {
	return s.versions(ctx, key)
}

// HistoryAtHand implements store.HistorianAtHand: one member of etcd answers.
func (s *Store) HistoryAtHand(ctx context.Context, key schema.Key) ([]store.Version, error) {
	return s.versions(ctx, key, clientv3.WithSerializable())
}

func (s *Store) versions(ctx context.Context, key schema.Key, fresh ...clientv3.OpOption) ([]store.Version, error) {
	name, ok := s.keys.of(key)
	if !ok {
		return nil, &store.Error{Kind: store.ErrNotFound, Key: key}
	}
	if err := s.isOpen(ctx); err != nil {
		return nil, err
	}
	resp, err := s.client.Txn(ctx).Then(
		clientv3.OpGet(name, fresh...), s.records(name, fresh...),
		clientv3.OpGet(s.keys.floor, fresh...), clientv3.OpGet(s.keys.kept, fresh...)).Commit()
	if err != nil {
		return nil, translate("read the history", err, key)
	}
	records := entries(s.keys, s.kept(resp.Responses[1].GetResponseRange().Kvs))
	var current *schema.Object
	for _, kv := range resp.Responses[0].GetResponseRange().Kvs {
		if current, err = s.keys.object(kv, kv.ModRevision); err != nil {
			current = nil // Its state is lost.
		}
	}
	floor, kept := floorOf(resp.Responses[2].GetResponseRange().Kvs), keptOf(resp.Responses[3].GetResponseRange().Kvs)
	versions := store.Versions(records, current, s.reach(len(records), kept, floor))
	if len(versions) == 0 {
		return nil, &store.Error{Kind: store.ErrNotFound, Key: key}
	}
	return versions, nil
}

// records returns the operation that reads the records of one object, the oldest first.
func (s *Store) records(objectKey string, fresh ...clientv3.OpOption) clientv3.Op {
	return clientv3.OpGet(s.keys.historyOf(objectKey), append(slices.Clone(fresh), clientv3.WithPrefix(),
		clientv3.WithSort(clientv3.SortByModRevision, clientv3.SortAscend))...)
}

// kept returns the newest records of an object. There may be more than are kept for a
// while.
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
