package etcd

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

// past is the range that Changes compares: the store at revision from, and etcd at now.
type past struct {
	from, now int64
	// floor is the newest revision whose records may have been dropped, even if an
	// object has few records or none.
	floor int64
	kept  kept
}

// Changes implements store.Historian.
func (s *Store) Changes(ctx context.Context, scope store.Scope, revision int64) ([]store.Difference, error) {
	return store.AllChanges(ctx, s, scope, revision)
}

// ChangesPage implements store.Historian. It reads at one revision of etcd.
func (s *Store) ChangesPage(ctx context.Context, scope store.Scope, opts store.ChangesOptions) (page []store.Difference, more bool, err error) {
	newest, now, err := s.clock(ctx)
	switch {
	case err != nil:
		return nil, false, err
	case opts.Since > newest:
		return nil, false, store.NotReached(opts.Since, newest)
	}
	p := past{from: opts.Since, now: now}
	if err := s.bounds(ctx, &p, newest); err != nil {
		return nil, false, err
	}
	touched, more, err := s.touchedSince(ctx, scope, p, opts)
	if err != nil {
		return nil, false, err
	}
	size := 0
	for i, name := range touched {
		d, err := s.difference(ctx, name, p)
		if err != nil {
			return nil, false, err
		}
		page = append(page, d)
		if size += d.Size(); size >= store.MaxChangesPage {
			return page, more || i+1 < len(touched), nil
		}
	}
	return page, more, nil
}

// bounds reads how far back records are complete for all objects. A store without
// history knows of no change.
func (s *Store) bounds(ctx context.Context, p *past, newest int64) error {
	resp, err := s.client.Txn(ctx).Then(
		clientv3.OpGet(s.keys.floor, clientv3.WithRev(p.now)),
		clientv3.OpGet(s.keys.kept, clientv3.WithRev(p.now)),
	).Commit()
	if err != nil {
		return translate("read the changes", err, schema.Key{})
	}
	p.floor = min(floorOf(resp.Responses[0].GetResponseRange().Kvs), newest)
	p.kept = keptOf(resp.Responses[1].GetResponseRange().Kvs)
	if s.limits.History == 0 {
		p.floor = newest
	}
	return nil
}

// floorOf decodes a floor: a revision, or an empty value for the revision that put it
// (see unrecorded). A value that cannot be read counts as all revisions.
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

// touchedSince returns the keys of the changed objects of a page. It finds them by
// their records and by the objects themselves, because there may be no records. It
// cannot find an object that was deleted without a record, so it returns an error if
// there may be one.
func (s *Store) touchedSince(ctx context.Context, scope store.Scope, p past, opts store.ChangesOptions) (names []string, more bool, err error) {
	for _, scope := range s.keys.ranges(scope, opts.After) {
		w := s.walkTouched(ctx, scope, p, opts.After)
		for {
			name, err := w.next()
			if err != nil {
				return nil, false, err
			}
			if name == "" {
				break
			}
			if len(names) == opts.Limit {
				return names, true, s.reachesBack(ctx, scope, p)
			}
			names = append(names, name)
		}
	}
	if scope.Name != "" && len(names) > 0 {
		return names, false, nil // The records of the object show whether they are complete.
	}
	return names, false, s.reachesBack(ctx, scope, p)
}

// ranges splits a scope into scopes of one kind each, without the kinds before that of
// the key after.
func (layout) ranges(scope store.Scope, after schema.Key) (out []store.Scope) {
	kinds := schema.Kinds()
	if scope.Kind != nil {
		kinds = []*schema.Kind{scope.Kind}
	}
	if i := slices.IndexFunc(kinds, func(k *schema.Kind) bool { return k.Kind == after.Kind }); i > 0 {
		kinds = kinds[i:]
	}
	for _, kind := range kinds {
		out = append(out, store.Scope{Kind: kind, Namespace: scope.Namespace, Name: scope.Name})
	}
	return out
}

// objectNamed returns the key of the object for its own key or the key of one of its
// records.
func (l layout) objectNamed(key string) string {
	if !strings.HasPrefix(key, l.history) {
		return key
	}
	object, _ := cutLast(key)
	return l.objectOf(object)
}

// reachesBack returns an error if the scope may have had deleted objects without a
// record.
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
	// A present object itself shows when it was changed.
	key := schema.Key{Kind: scope.Kind.Kind, Namespace: scope.Namespace, Name: scope.Name}
	resp, err := s.client.Get(ctx, s.keys.span(scope).from, clientv3.WithRev(p.now), clientv3.WithCountOnly())
	switch {
	case err != nil:
		return translate("read the changes", err, key)
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
		return d, translate("read the changes", err, key)
	}
	for _, kv := range resp.Responses[0].GetResponseRange().Kvs {
		d.Revision = kv.ModRevision
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
	d.Revision = max(d.Revision, records[len(records)-1].ModRevision)
	reach := s.reach(len(records), p.kept, p.floor)
	complete := p.from >= p.floor && (first > 0 || reach.Oldest > 0 && p.from >= reach.Oldest)
	d.Then, err = s.keys.entry(records[first]).Then(key, p.from, complete)
	return d, err
}
