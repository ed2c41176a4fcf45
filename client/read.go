package client

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

// Get keeps the contract of store.Reader.
func (c *Client) Get(ctx context.Context, key schema.Key, opts store.ReadOptions) (*schema.Object, error) {
	s, err := c.GetStated(ctx, key, opts)
	return s.Object, err
}

// GetStated is Get with the status, as of a moment ago.
func (c *Client) GetStated(ctx context.Context, key schema.Key, opts store.ReadOptions) (Stated, error) {
	return c.getStated(ctx, key, opts, url.Values{})
}

// GetStatedNow is Get with a status for which the proxies were looked at after the
// call.
func (c *Client) GetStatedNow(ctx context.Context, key schema.Key, opts store.ReadOptions) (Stated, error) {
	return c.getStated(ctx, key, opts, url.Values{"freshStatus": {"true"}})
}

func (c *Client) getStated(ctx context.Context, key schema.Key, opts store.ReadOptions, query url.Values) (Stated, error) {
	kind, err := kindOf(key)
	if err != nil {
		return Stated{}, err
	}
	if opts.AtLeast != 0 {
		query.Set("resourceVersion", atLeast(opts.AtLeast))
	}
	body, err := c.call(ctx, request{method: http.MethodGet, url: c.url(kind, key.Namespace, key.Name, query)}, maxObjectAnswer)
	if err != nil {
		return Stated{}, err
	}
	return decodeStated(kind, body)
}

// List keeps the contract of store.Reader. A list of all kinds is one request
// a kind: the first sets the revision, the others ask for exactly that one.
func (c *Client) List(ctx context.Context, scope store.Scope, opts store.ListOptions) (*store.List, error) {
	if opts.Exact != 0 && opts.AtLeast != 0 {
		return nil, invalid("a list is either exact or not older than a revision, not both")
	}
	list := &store.List{}
	kinds := kindsAfter(kindsIn(scope), opts.After)
	for i, kind := range kinds {
		page, err := c.listKind(ctx, kind, scope, opts)
		if err != nil {
			return nil, err
		}
		for _, item := range page.items {
			list.Items = append(list.Items, item.Object)
		}
		list.Revision, list.Remaining = page.revision, page.remaining
		left := opts.Limit - len(page.items)
		switch {
		case opts.Limit > 0 && (left <= 0 || page.remaining != 0):
			if i+1 < len(kinds) {
				list.Remaining = -1 // Nobody counted the other kinds.
			}
			return list, nil
		case opts.Limit == 0:
			left = 0
		}
		opts = store.ListOptions{Exact: page.revision, Limit: left}
	}
	return list, nil
}

// kindsAfter leaves out the kinds that stand before that of a key in lists.
func kindsAfter(kinds []*schema.Kind, after schema.Key) []*schema.Kind {
	i := slices.IndexFunc(kinds, func(k *schema.Kind) bool { return k.Kind == after.Kind })
	return kinds[max(i, 0):]
}

// ListStated is List of one kind with the status of each.
func (c *Client) ListStated(ctx context.Context, scope store.Scope, opts store.ListOptions) (*StatedList, error) {
	page, err := c.listKind(ctx, scope.Kind, scope, opts)
	return &StatedList{Items: page.items, Revision: page.revision}, err
}

func (c *Client) listKind(ctx context.Context, kind *schema.Kind, scope store.Scope, opts store.ListOptions) (listPage, error) {
	query := nameSelector(scope.Name)
	if opts.Limit > 0 {
		query.Set("limit", strconv.Itoa(opts.Limit))
	}
	switch {
	case opts.After != (schema.Key{}):
		query.Set("continue", store.Continue{Revision: opts.Exact, After: opts.After}.Token())
	case opts.Exact != 0:
		query.Set("resourceVersion", strconv.FormatInt(opts.Exact, 10))
		query.Set("resourceVersionMatch", "Exact")
	case opts.AtLeast != 0:
		query.Set("resourceVersion", atLeast(opts.AtLeast))
		query.Set("resourceVersionMatch", "NotOlderThan")
	}
	body, err := c.call(ctx, request{method: http.MethodGet, url: c.url(kind, scope.Namespace, "", query)}, maxListAnswer)
	if err != nil {
		return listPage{}, err
	}
	return decodeList(kind, body)
}

// Revision keeps the contract of store.Reader. HTTP has no call of its own for
// it: a list that selects nothing tells the revision it reflects.
func (c *Client) Revision(ctx context.Context) (int64, error) {
	kind := schema.Kinds()[0]
	page, err := c.listKind(ctx, kind, store.Scope{Name: noSuchName}, store.ListOptions{})
	return page.revision, err
}

// noSuchName is no valid name of an object, so it selects nothing.
const noSuchName = "-"

func nameSelector(name string) url.Values {
	query := url.Values{}
	if name != "" {
		query.Set("fieldSelector", "metadata.name="+name)
	}
	return query
}

// atLeast spells a bound: "0" means "any" in the Kubernetes API.
func atLeast(revision int64) string {
	if revision == store.Any {
		return "0"
	}
	return strconv.FormatInt(revision, 10)
}

func parseRevision(resourceVersion string) (int64, error) {
	n, err := strconv.ParseInt(resourceVersion, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("the server sent resourceVersion %q, want a decimal number", resourceVersion)
	}
	return n, nil
}

func kindsIn(scope store.Scope) []*schema.Kind {
	if scope.Kind != nil {
		return []*schema.Kind{scope.Kind}
	}
	return schema.Kinds()
}

func kindOf(key schema.Key) (*schema.Kind, error) {
	kind, ok := schema.KindByName(key.Kind)
	if !ok {
		return nil, &store.Error{Kind: store.ErrInvalid, Key: key, Detail: fmt.Sprintf("there is no kind %q", key.Kind)}
	}
	return kind, nil
}

func invalid(detail string) error {
	return &store.Error{Kind: store.ErrInvalid, Detail: detail}
}
