package objects

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/server/render"
	"github.com/pilot-api/pilot-api/server/wire"
	"github.com/pilot-api/pilot-api/store"
)

// deleteCollection answers DELETE on the collection of a namespace with the last
// states of the deleted objects. It deletes them in one transaction if the store
// accepts one that large, and otherwise in several.
func (k *resource) deleteCollection(w http.ResponseWriter, r *http.Request) error {
	f, writes, opts, err := k.beginDelete(r, deleteCollectionParams)
	if err != nil {
		return err
	}
	if err := wire.CheckFilled(wire.Query(r), "labelSelector", "fieldSelector"); err != nil {
		return err
	}
	selected, err := k.ParseSelection(wire.Query(r))
	if err != nil {
		return err
	}
	if err := selected.CheckGiven(wire.Query(r)); err != nil {
		return err
	}
	pre, err := Preconditions(opts.Preconditions)
	if err != nil {
		return err
	}
	deleted, err := k.deleteSelected(r.Context(), writes, k.Scope(r), selected, pre)
	if err != nil {
		return err
	}
	wire.WarnOfUnreadable(w, k.opts.Reads, selected.Narrow(k.Scope(r)))
	return k.writeList(w, r, f, deleted)
}

// deleteSelected deletes the objects that are selected at the moment of their
// deletion: it deletes each object only if it is still as it was found. If one has
// changed, it searches for the remaining objects again.
func (k *resource) deleteSelected(ctx context.Context, writes store.Interface, scope store.Scope, selected render.Selection, pre store.Preconditions) (*store.List, error) {
	deleted, revision := map[schema.Key]*schema.Object{}, int64(0)
	for {
		found, err := k.page(ctx, selected.Narrow(scope), selected, store.ListOptions{})
		if err != nil {
			return nil, err
		}
		gone, err := deleteTogether(ctx, writes, found.Items, pre)
		revision = max(revision, found.Revision)
		for _, o := range gone {
			deleted[o.Key()], revision = o, max(revision, o.Revision())
		}
		overtaken := errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrNotFound)
		if !overtaken || pre != (store.Preconditions{}) || ctx.Err() != nil {
			return &store.List{Revision: revision, Items: slices.SortedFunc(maps.Values(deleted), store.Compare)}, err
		}
	}
}

// deleteTogether deletes objs in one transaction. If that is too large, it deletes
// each half by itself. With an error it returns the objects deleted before.
func deleteTogether(ctx context.Context, writes store.Interface, objs []*schema.Object, pre store.Preconditions) ([]*schema.Object, error) {
	if len(objs) == 0 {
		return nil, nil
	}
	if len(objs) <= store.MaxTxnOps {
		gone, err := writes.Txn(ctx, deletions(objs, pre))
		if len(objs) == 1 || !errors.Is(err, store.ErrTooLarge) {
			return gone, err
		}
	}
	half := len(objs) / 2
	gone, err := deleteTogether(ctx, writes, objs[:half], pre)
	if err != nil {
		return gone, err
	}
	rest, err := deleteTogether(ctx, writes, objs[half:], pre)
	return append(gone, rest...), err
}

func deletions(objs []*schema.Object, pre store.Preconditions) []store.Op {
	ops := make([]store.Op, len(objs))
	for i, o := range objs {
		ops[i] = store.Op{Verb: store.OpDelete, Key: o.Key(), Pre: store.Preconditions{
			UID:             cmp.Or(pre.UID, string(o.Meta.UID)),
			ResourceVersion: cmp.Or(pre.ResourceVersion, o.Meta.ResourceVersion),
		}}
	}
	return ops
}
