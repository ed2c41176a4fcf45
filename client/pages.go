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

// Selection selects the objects to list. Nil Kinds means all kinds, and an empty Namespace
// all namespaces. The selectors have the syntax of the API, such as
// team=reviews,stage!=test and spec.hosts=reviews. Each of the kinds must have the selected
// fields. A kind that occurs twice is listed once, at its first place.
type Selection struct {
	Kinds          []*schema.Kind
	Namespace      string
	Labels, Fields string
}

// Pages lists the selected objects by kind, namespace and name, at most opts.Limit at a
// time, or all at once if it is 0. All pages have the revision of the first page, which the
// other options determine. An error ends the pages. Each page begins after the last object
// of the page before. If the server repeats an object, Pages returns an error.
//
// The error is store.ErrExpired if the server no longer keeps that revision, for
// example after a compaction. Drop the earlier pages then: they are part of a state
// that cannot be read completely. A new list reads the newest state.
func (c *Client) Pages(ctx context.Context, what Selection, opts store.ListOptions) iter.Seq2[*ListWithStatus, error] {
	return func(yield func(*ListWithStatus, error) bool) {
		for {
			page, err := c.listWithStatuses(ctx, what, opts)
			if !yield(page, err) || err != nil || page.Remaining == 0 {
				return
			}
			opts = store.ListOptions{Exact: page.Revision, Limit: opts.Limit, After: page.Items[len(page.Items)-1].Key()}
		}
	}
}

// InScope returns the selection of everything in a scope.
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

// name returns the only name that the fields select, "" if they select any.
func (s Selection) name() string {
	selector, err := fields.ParseSelector(s.Fields)
	if err != nil {
		return "" // The server refuses it.
	}
	name, _ := selector.RequiresExactMatch(schema.FieldName)
	return name
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

// kindsAfter returns the kinds, each once, without those before the kind of a key.
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

// listWithStatuses sends one request per kind. The first sets the revision, and the others
// request exactly that revision.
func (c *Client) listWithStatuses(ctx context.Context, what Selection, opts store.ListOptions) (*ListWithStatus, error) {
	if opts.Exact != 0 && opts.AtLeast != 0 {
		return nil, invalid("a list is either exact or not older than a revision, not both")
	}
	list, room := &ListWithStatus{}, c.maxWeight
	kinds := what.kindsAfter(opts.After)
	for i, kind := range kinds {
		page, err := c.listKind(ctx, kind, what, opts, &room)
		if err != nil {
			return nil, err
		}
		list.Items = append(list.Items, page.Items...)
		list.Revision, list.Remaining = page.Revision, page.Remaining
		left := opts.Limit - len(page.Items)
		switch {
		case opts.Limit > 0 && (left <= 0 || page.Remaining != 0):
			if i+1 < len(kinds) {
				list.Remaining = -1 // The other kinds were not counted.
			}
			return list, nil
		case opts.Limit == 0:
			left = 0
		}
		opts = store.ListOptions{Exact: page.Revision, Limit: left}
	}
	return list, nil
}
