package objects

import (
	"context"
	"errors"
	"math"
	"net/url"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/server/render"
	"github.com/pilot-api/pilot-api/server/wire"
	"github.com/pilot-api/pilot-api/store"
)

// pageOptions reads limit and continue. Without continue it reads the
// resourceVersion.
func (k *resource) pageOptions(q url.Values) (store.ListOptions, error) {
	limit, err := wire.CountParam(q, "limit")
	if err != nil {
		return store.ListOptions{}, err
	}
	opts, err := wire.ListOptions(q)
	if token := q.Get("continue"); err == nil && token != "" {
		opts, err = k.continued(q, token)
	}
	opts.Limit = int(min(limit, math.MaxInt32))
	return opts, err
}

// continued returns the options for the page after a token. A client can forge a
// token, but gets with it only objects that it can list anyway.
func (k *resource) continued(q url.Values, token string) (store.ListOptions, error) {
	if v := q.Get("resourceVersion"); v != "" && v != "0" || q.Get("resourceVersionMatch") != "" {
		return store.ListOptions{}, wire.BadRequest("query parameter continue: goes without resourceVersion and resourceVersionMatch, because it has a revision of its own")
	}
	from, err := store.ParseContinue(token)
	switch {
	case err != nil:
		return store.ListOptions{}, wire.BadRequest("query parameter continue: %v", err)
	case from.After.Kind != k.Kind.Kind:
		return store.ListOptions{}, wire.BadRequest("query parameter continue: belongs to a list of %s, this is one of %s", from.After.Kind, k.Kind.Kind)
	}
	return store.ListOptions{Exact: from.Revision, After: from.After}, nil
}

// leastScan is the least number of objects read at a time for a page of selected
// objects.
const leastScan = 500

// page lists up to opts.Limit selected objects, all at one revision.
func (k *resource) page(ctx context.Context, scope store.Scope, selected render.Selection, opts store.ListOptions) (*store.List, error) {
	if selected.All() || opts.Limit == 0 {
		list, err := k.opts.Reads.List(ctx, scope, opts)
		if err != nil {
			return nil, err
		}
		return selected.From(list), nil
	}
	limit := opts.Limit
	opts.Limit = max(limit, leastScan)
	found := &store.List{}
	for {
		list, err := k.opts.Reads.List(ctx, scope, opts)
		if err != nil {
			return nil, err
		}
		found.Revision = list.Revision
		found.Items = append(found.Items, selected.From(list).Items...)
		switch {
		case len(found.Items) > limit:
			found.Items, found.Remaining = found.Items[:limit], -1
			return found, nil
		case list.Remaining == 0 || len(list.Items) == 0:
			return found, nil
		}
		opts.AtLeast, opts.Exact, opts.After = 0, list.Revision, lastOf(list).Key()
	}
}

func lastOf(list *store.List) *schema.Object { return list.Items[len(list.Items)-1] }

// listMeta returns the metadata of a list, with the token of its next page.
func listMeta(list *store.List) metav1.ListMeta {
	meta := metav1.ListMeta{ResourceVersion: strconv.FormatInt(list.Revision, 10)}
	if list.Remaining == 0 || len(list.Items) == 0 {
		return meta
	}
	meta.Continue = store.Continue{Revision: list.Revision, After: lastOf(list).Key()}.Token()
	if n := int64(list.Remaining); n > 0 {
		meta.RemainingItemCount = &n
	}
	return meta
}

// continueAnyway adds to an expired revision the token that Kubernetes adds, with
// which a client can go on in the newest state instead of starting over.
func continueAnyway(err error, opts store.ListOptions) error {
	if !errors.Is(err, store.ErrExpired) || opts.After == (schema.Key{}) {
		return err
	}
	status := store.ToStatus(err)
	status.Message = "the state in which this list began is no longer kept: list again from the start, or go on in the newest state with the continue of this answer"
	status.Continue = store.Continue{After: opts.After}.Token()
	return &apierrors.StatusError{ErrStatus: *status}
}
