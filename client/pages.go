package client

import (
	"context"
	"iter"
	"net/url"
	"slices"

	"k8s.io/apimachinery/pkg/fields"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

// Selection is what is listed: the objects of some kinds, nil for all, in a
// namespace, "" for all, that selectors in the words of the API mean, such as
// team=reviews,stage!=test and spec.hosts=reviews. Fields must be known to each of
// the kinds. A kind that is there twice is listed once, in its first place.
type Selection struct {
	Kinds          []*schema.Kind
	Namespace      string
	Labels, Fields string
}

// Pages lists what is selected, by kind, namespace and name, at most opts.Limit
// objects at a time and 0 for all of them at once. All pages are of one revision:
// that of the first, which is as the other options say. An error ends them.
//
// Where the server no longer keeps that revision, as after a compaction, the error
// is store.ErrExpired: the pages before are a part of a state that cannot be read to
// its end, and are to be dropped. A list that begins anew is one of the newest state.
func (c *Client) Pages(ctx context.Context, what Selection, opts store.ListOptions) iter.Seq2[*StatedList, error] {
	return func(yield func(*StatedList, error) bool) {
		for {
			page, err := c.listStated(ctx, what, opts)
			if !yield(page, err) || err != nil || page.Remaining == 0 || len(page.Items) == 0 {
				return
			}
			opts = store.ListOptions{Exact: page.Revision, Limit: opts.Limit, After: page.Items[len(page.Items)-1].Key()}
		}
	}
}

// InScope selects all of a scope.
func InScope(scope store.Scope) Selection {
	what := Selection{Namespace: scope.Namespace}
	if scope.Kind != nil {
		what.Kinds = []*schema.Kind{scope.Kind}
	}
	if scope.Name != "" {
		what.Fields = fields.OneTermEqualSelector(schema.FieldName, scope.Name).String()
	}
	return what
}

func (s Selection) query() url.Values {
	query := url.Values{}
	if s.Labels != "" {
		query.Set("labelSelector", s.Labels)
	}
	if s.Fields != "" {
		query.Set("fieldSelector", s.Fields)
	}
	return query
}

// kindsAfter are the kinds, each once, without those that stand before that of a key.
func (s Selection) kindsAfter(after schema.Key) []*schema.Kind {
	kinds := once(s.Kinds)
	if s.Kinds == nil {
		kinds = schema.Kinds()
	}
	i := slices.IndexFunc(kinds, func(k *schema.Kind) bool { return k.Kind == after.Kind })
	return kinds[max(i, 0):]
}

func once(kinds []*schema.Kind) (out []*schema.Kind) {
	for _, kind := range kinds {
		if !slices.Contains(out, kind) {
			out = append(out, kind)
		}
	}
	return out
}

// listStated is one request a kind: the first sets the revision, the others ask for
// exactly that one.
func (c *Client) listStated(ctx context.Context, what Selection, opts store.ListOptions) (*StatedList, error) {
	if opts.Exact != 0 && opts.AtLeast != 0 {
		return nil, invalid("a list is either exact or not older than a revision, not both")
	}
	list := &StatedList{}
	kinds := what.kindsAfter(opts.After)
	for i, kind := range kinds {
		page, err := c.listKind(ctx, kind, what, opts)
		if err != nil {
			return nil, err
		}
		list.Items = append(list.Items, page.Items...)
		list.Revision, list.Remaining = page.Revision, page.Remaining
		left := opts.Limit - len(page.Items)
		switch {
		case opts.Limit > 0 && (left <= 0 || page.Remaining != 0):
			if i+1 < len(kinds) {
				list.Remaining = -1 // Nobody counted the other kinds.
			}
			return list, nil
		case opts.Limit == 0:
			left = 0
		}
		opts = store.ListOptions{Exact: page.Revision, Limit: left}
	}
	return list, nil
}
