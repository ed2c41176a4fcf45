package apply

import (
	"context"
	"errors"

	"github.com/pilot-api/pilot-api/client"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/cli"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

// listFrom is the number of wanted objects of a kind and namespace from which all
// objects there are listed. Fewer are read one by one, because there may be many others.
const listFrom = 10

// stored returns the stored objects that the files name and, to prune, those that the
// files may no longer have.
func (t *set) stored(ctx context.Context) (map[schema.Key]*schema.Object, error) {
	found := map[schema.Key]*schema.Object{}
	if t.prune {
		list, err := t.candidates(ctx)
		if err != nil {
			return nil, err
		}
		for _, o := range list.Items {
			found[o.Key()] = o.Object
		}
	}
	for scope, wanted := range t.wanted(found) {
		read := t.readEach
		if len(wanted) >= listFrom {
			read = t.readAll
		}
		if err := read(ctx, scope, wanted, found); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// wanted returns the objects of the files that are not in found, by kind and namespace.
func (t *set) wanted(found map[schema.Key]*schema.Object) map[store.Scope]map[schema.Key]bool {
	out := map[store.Scope]map[schema.Key]bool{}
	for _, m := range t.list {
		if found[m.Key()] != nil {
			continue
		}
		scope := store.Scope{Kind: m.Kind, Namespace: m.Meta.Namespace}
		if out[scope] == nil {
			out[scope] = map[schema.Key]bool{}
		}
		out[scope][m.Key()] = true
	}
	return out
}

func (t *set) readEach(ctx context.Context, _ store.Scope, wanted map[schema.Key]bool, found map[schema.Key]*schema.Object) error {
	for key := range wanted {
		o, err := t.client.Get(ctx, key, store.ReadOptions{})
		switch {
		case err == nil:
			found[key] = o
		case !errors.Is(err, store.ErrNotFound):
			return err
		}
	}
	return nil
}

func (t *set) readAll(ctx context.Context, scope store.Scope, wanted map[schema.Key]bool, found map[schema.Key]*schema.Object) error {
	list, err := cli.List(ctx, t.Session, t.client, client.InScope(scope), cli.PageSize)
	if err != nil {
		return err
	}
	for _, o := range list.Items {
		if wanted[o.Key()] {
			found[o.Key()] = o.Object
		}
	}
	return nil
}
