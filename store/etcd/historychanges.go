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

// past is what Changes compares: the store at a revision, and etcd now.
type past struct {
	from, now int64
	// floor is the newest revision of which records may be gone though there
	// are few of their object, or none.
	floor int64
	kept  kept
}

// Changes implements store.Historian. It reads at one revision of etcd.
func (s *Store) Changes(ctx context.Context, scope store.Scope, revision int64) ([]store.Difference, error) {
	newest, now, err := s.clock(ctx)
	switch {
	case err != nil:
		return nil, err
	case revision > newest:
		return nil, store.NotReached(revision, newest)
	}
	p := past{from: revision, now: now}
	if err := s.bounds(ctx, &p, newest); err != nil {
		return nil, err
	}
	touched, err := s.touchedSince(ctx, scope, p)
	if err != nil {
		return nil, err
	}
	var out []store.Difference
	for _, name := range touched {
		d, err := s.difference(ctx, name, p)
		if err != nil {
			return nil, err
		}
		out = append(out, d)
	}
	store.SortDifferences(out)
	return out, nil
}

// bounds reads how far back records tell of everything. Who keeps none knows of no
// change.
func (s *Store) bounds(ctx context.Context, p *past, newest int64) error {
	resp, err := s.client.Txn(ctx).Then(
		clientv3.OpGet(s.keys.floor, clientv3.WithRev(p.now)),
		clientv3.OpGet(s.keys.kept, clientv3.WithRev(p.now)),
	).Commit()
	if err != nil {
		return translate(err, schema.Key{})
	}
	p.floor = min(floorOf(resp.Responses[0].GetResponseRange().Kvs), newest)
	p.kept = keptOf(resp.Responses[1].GetResponseRange().Kvs)
	if s.limits.History == 0 {
		p.floor = newest
	}
	return nil
}

// floorOf reads a floor: a revision, or nothing for the one that put it (see
// unrecorded). What cannot be read is all revisions.
func floorOf(kvs []*mvccpb.KeyValue) int64 {
	if len(kvs) == 0 {
		return 0
	}
	if len(kvs[0].Value) == 0 {
		return kvs[0].ModRevision
	}
	n, err := strconv.ParseInt(string(kvs[0].Value), 10, 64)
	if err != nil {
		return math.MaxInt64
	}
	return n
}

// touchedSince is the keys of the objects that changed since: by their records,
// and by themselves, as there may be none. What is gone without a record is not
// found, and so an error where there may be such.
func (s *Store) touchedSince(ctx context.Context, scope store.Scope, p past) ([]string, error) {
	found := make(map[string]bool)
	for _, r := range s.keys.ranges(scope) {
		keys, err := s.putSince(ctx, r, p)
		if err != nil {
			return nil, err
		}
		for _, key := range keys {
			name := s.keys.objectNamed(key)
			if object, ok := s.keys.parse(name); ok && scope.Contains(object) {
				found[name] = true
			}
		}
	}
	if len(found) > store.MaxTxnOps {
		return nil, &store.Error{Kind: store.ErrTooLarge, Detail: fmt.Sprintf(
			"%d objects have changed since revision %d; at most %d can be compared at once", len(found), p.from, store.MaxTxnOps)}
	}
	if scope.Name != "" && len(found) > 0 {
		return slices.Collect(maps.Keys(found)), nil // Its records tell whether they are all.
	}
	return slices.Collect(maps.Keys(found)), s.reachesBack(ctx, scope, p)
}

// ranges are those of the objects of a scope, and of their records.
func (l layout) ranges(scope store.Scope) (out []span) {
	kinds := schema.Kinds()
	if scope.Kind != nil {
		kinds = []*schema.Kind{scope.Kind}
	}
	for _, kind := range kinds {
		objects := l.span(store.Scope{Kind: kind, Namespace: scope.Namespace, Name: scope.Name})
		records := l.history + strings.TrimPrefix(objects.from, l.objects)
		out = append(out, objects, span{records, clientv3.GetPrefixRangeEnd(records)})
	}
	return out
}

// objectNamed is the key of the object that a key is of, or of a record of it.
func (l layout) objectNamed(key string) string {
	if !strings.HasPrefix(key, l.history) {
		return key
	}
	object, _ := cutLast(key)
	return l.objectOf(object)
}

// putSince are the keys of a range that were put since.
func (s *Store) putSince(ctx context.Context, r span, p past) (keys []string, err error) {
	resp, err := s.client.Get(ctx, r.from, clientv3.WithRange(r.to), clientv3.WithKeysOnly(),
		clientv3.WithRev(p.now), clientv3.WithMinModRev(p.from+1))
	if err != nil {
		return nil, translate(err, schema.Key{})
	}
	for _, kv := range resp.Kvs {
		keys = append(keys, string(kv.Key))
	}
	return keys, nil
}

// reachesBack is an error where objects of a scope may have gone, or been, of
// which there is no record.
func (s *Store) reachesBack(ctx context.Context, scope store.Scope, p past) error {
	switch {
	case p.from >= p.floor:
		return nil
	case s.limits.History == 0:
		return &store.Error{Kind: store.ErrExpired, Detail: "no records of changes are kept (--history 0)"}
	case scope.Name == "":
		return &store.Error{Kind: store.ErrExpired, Detail: fmt.Sprintf(
			"what has changed since revision %d is not known of all objects: their history reaches back to revision %d", p.from, p.floor)}
	}
	// An object that is there tells by itself when it was changed.
	key := schema.Key{Kind: scope.Kind.Kind, Namespace: scope.Namespace, Name: scope.Name}
	resp, err := s.client.Get(ctx, s.keys.span(scope).from, clientv3.WithRev(p.now), clientv3.WithCountOnly())
	switch {
	case err != nil:
		return translate(err, key)
	case resp.Count == 0:
		return shortOf(key)
	}
	return nil
}

func shortOf(key schema.Key) error {
	return &store.Error{Kind: store.ErrExpired, Key: key, Detail: "its history does not reach back to that revision"}
}

// difference compares one object, named by its key in etcd.
func (s *Store) difference(ctx context.Context, name string, p past) (store.Difference, error) {
	key, _ := s.keys.parse(name)
	d := store.Difference{Key: key}
	resp, err := s.client.Txn(ctx).Then(
		clientv3.OpGet(name, clientv3.WithRev(p.now)),
		clientv3.OpGet(s.keys.historyOf(name), clientv3.WithPrefix(), clientv3.WithRev(p.now),
			clientv3.WithSort(clientv3.SortByModRevision, clientv3.SortAscend)),
	).Commit()
	if err != nil {
		return d, translate(err, key)
	}
	for _, kv := range resp.Responses[0].GetResponseRange().Kvs {
		if d.Now, err = s.keys.object(kv, kv.ModRevision); err != nil {
			damage := s.keys.unreadable(kv, err)
			d.Unreadable = &damage
		}
	}
	records := resp.Responses[1].GetResponseRange().Kvs
	first := slices.IndexFunc(records, func(kv *mvccpb.KeyValue) bool { return kv.ModRevision > p.from })
	if first < 0 {
		return d, shortOf(key)
	}
	reach := s.reach(len(records), p.kept, p.floor)
	complete := p.from >= p.floor && (first > 0 || reach.Oldest > 0 && p.from >= reach.Oldest)
	d.Then, err = s.keys.entry(records[first]).Then(key, p.from, complete)
	return d, err
}
