package etcd

import (
	"context"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

// List implements store.Reader. Keys have the order of lists, so a page is a range with a
// limit.
func (s *Store) List(ctx context.Context, scope store.Scope, opts store.ListOptions) (*store.List, error) {
	span := s.keys.span(scope)
	if scope.Kind == nil && scope.Namespace != "" {
		// No range matches this scope: filter, then cut the page.
		l, err := s.list(ctx, scope, span, store.ListOptions{AtLeast: opts.AtLeast, Exact: opts.Exact})
		if err != nil {
			return nil, err
		}
		l.Items, l.Remaining = opts.Page(l.Items)
		return l, nil
	}
	if after, ok := s.keys.of(opts.After); ok {
		span = span.after(after)
	}
	return s.list(ctx, scope, span, opts)
}

// list reads until it has as many objects as the limit allows, or all of them.
// Unreadable values do not count toward the limit.
func (s *Store) list(ctx context.Context, scope store.Scope, span span, opts store.ListOptions) (*store.List, error) {
	l := &store.List{Items: []*schema.Object{}}
	for {
		found, revision, err := s.readSpan(ctx, span, opts)
		if err != nil {
			return nil, translate("list", err, schema.Key{})
		}
		items, unreadable := s.objects(found.Kvs, scope)
		l.Revision, l.Items = revision, append(l.Items, items...)
		l.Unreadable = append(l.Unreadable, unreadable...)
		l.Remaining = int(found.Count) - len(found.Kvs)
		if opts.Limit -= len(items); !found.More || opts.Limit <= 0 {
			return l, nil
		}
		opts.AtLeast, opts.Exact = 0, revision
		span = span.after(string(found.Kvs[len(found.Kvs)-1].Key))
	}
}

// readSpan reads one range at the revision that the options ask for.
func (s *Store) readSpan(ctx context.Context, span span, opts store.ListOptions) (*clientv3.GetResponse, int64, error) {
	ops := []clientv3.OpOption{clientv3.WithRange(span.to), clientv3.WithLimit(int64(opts.Limit))}
	if opts.Exact == 0 {
		return s.read(ctx, span.from, opts.AtLeast, ops...)
	}
	found, err := s.client.Get(ctx, span.from, append(ops, clientv3.WithRev(opts.Exact))...)
	return found, opts.Exact, err
}

// objects decodes the values of a range.
func (s *Store) objects(kvs []*mvccpb.KeyValue, scope store.Scope) (objs []*schema.Object, unreadable []store.Unreadable) {
	objs = make([]*schema.Object, 0, len(kvs))
	for _, kv := range kvs {
		obj, err := s.keys.object(kv, kv.ModRevision)
		if err != nil {
			s.log.Error("object in etcd left out", "key", string(kv.Key), "error", err)
			if u := s.keys.unreadable(kv, err); inScope(u, scope) {
				unreadable = append(unreadable, u)
			}
			continue
		}
		if scope.Contains(obj.Key()) {
			objs = append(objs, obj)
		}
	}
	return objs, unreadable
}
