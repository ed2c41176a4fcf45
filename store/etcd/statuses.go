package etcd

import (
	"context"
	"errors"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

// A store keeps statuses as long as the key of the last status revision exists. Its value
// has the statuses that moved at that revision, which is what a watch needs. The pages
// have all statuses, which is what a list needs. One transaction writes the key, the pages
// that differ and the head of the clock, so a status revision is a revision like any
// other. See docs/decisions/037-status-in-watches.md.

// KeepStatuses makes the store keep statuses from now on, or no longer. It changes nothing
// if that is so already.
func (s *Store) KeepStatuses(ctx context.Context, keep bool) error {
	if err := s.isOpen(ctx); err != nil {
		return err
	}
	change := s.client.Txn(ctx).
		If(clientv3.Compare(clientv3.CreateRevision(s.keys.statuses), ">", 0)).
		Then(clientv3.OpDelete(s.keys.statuses), clientv3.OpDelete(s.keys.statusPages, clientv3.WithPrefix()), s.keys.tick())
	if keep {
		change = s.client.Txn(ctx).
			If(s.keys.absent(s.keys.statuses)).
			Then(clientv3.OpPut(s.keys.statuses, string(noStatuses)), s.keys.tick())
	}
	_, err := change.Commit()
	return translate("keep statuses", err, schema.Key{})
}

// KeepsStatuses reports whether the store keeps statuses.
func (s *Store) KeepsStatuses(ctx context.Context) (bool, error) {
	resp, err := s.client.Get(ctx, s.keys.statuses, clientv3.WithCountOnly())
	if err != nil {
		return false, translate("read statuses", err, schema.Key{})
	}
	return resp.Count > 0, nil
}

// Statuses implements store.StatusKeeper.
func (s *Store) Statuses(ctx context.Context, revision int64) (kept bool, all []store.StoredStatus, err error) {
	kept, pages, err := s.statusPages(ctx, clientv3.WithRev(revision))
	for _, page := range pages {
		all = append(all, page...)
	}
	return kept, all, err
}

// statusPages returns the statuses by the keys of their pages.
func (s *Store) statusPages(ctx context.Context, at ...clientv3.OpOption) (kept bool, pages map[string][]store.StoredStatus, err error) {
	resp, err := s.client.Txn(ctx).Then(
		clientv3.OpGet(s.keys.statuses, append(at, clientv3.WithCountOnly())...),
		clientv3.OpGet(s.keys.statusPages, append(at, clientv3.WithPrefix())...),
	).Commit()
	if err != nil {
		return false, nil, translate("read statuses", err, schema.Key{})
	}
	pages = map[string][]store.StoredStatus{}
	for _, kv := range resp.Responses[1].GetResponseRange().Kvs {
		pages[string(kv.Key)] = s.readStatuses(kv)
	}
	return resp.Responses[0].GetResponseRange().Count > 0, pages, nil
}

// readStatuses decodes a value. A value that cannot be read has no statuses, at all
// servers alike: its objects have the versions of their own revisions.
func (s *Store) readStatuses(kv *mvccpb.KeyValue) []store.StoredStatus {
	all, err := decodeStatuses(kv.Value, kv.ModRevision)
	if err != nil {
		s.log.Error("statuses in etcd cannot be read", "key", string(kv.Key), "revision", kv.ModRevision, "error", err)
	}
	return all
}

// statusBatch converts the event of a status revision. A watch of less than everything
// gets only its revision.
func (w *watcher) statusBatch(ev *clientv3.Event) store.Batch {
	batch := store.Batch{Revision: ev.Kv.ModRevision}
	switch {
	case w.scope != (store.Scope{}):
	case ev.Type == clientv3.EventTypeDelete:
		batch.Statuses = &store.StatusRevision{}
	default:
		batch.Statuses = &store.StatusRevision{Kept: true, Moved: w.store.readStatuses(ev.Kv)}
	}
	return batch
}

// ErrStatusesLost means that a StatusWriter may not write any more: the store keeps no
// statuses now, another server writes them, or it is not known what the last write did.
var ErrStatusesLost = errors.New("the statuses are written by another server, or not kept any more")
