package client

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

// Get implements store.Reader.
func (c *Client) Get(ctx context.Context, key schema.Key, opts store.ReadOptions) (*schema.Object, error) {
	s, err := c.GetWithStatus(ctx, key, opts)
	return s.Object, err
}

// GetWithStatus is Get with the object's status, which may be a moment old.
func (c *Client) GetWithStatus(ctx context.Context, key schema.Key, opts store.ReadOptions) (ObjectWithStatus, error) {
	return c.getWithStatus(ctx, key, opts, url.Values{})
}

// GetWithFreshStatus is Get with a status for which the server checks the proxies after the
// call.
func (c *Client) GetWithFreshStatus(ctx context.Context, key schema.Key, opts store.ReadOptions) (ObjectWithStatus, error) {
	return c.getWithStatus(ctx, key, opts, url.Values{"freshStatus": {"true"}})
}

func (c *Client) getWithStatus(ctx context.Context, key schema.Key, opts store.ReadOptions, query url.Values) (ObjectWithStatus, error) {
	kind, err := kindOf(key)
	if err != nil {
		return ObjectWithStatus{}, err
	}
	if opts.AtLeast != 0 {
		query.Set("resourceVersion", atLeast(opts.AtLeast))
	}
	body, err := c.call(ctx, request{method: http.MethodGet, url: c.url(kind, key.Namespace, key.Name, query)}, maxObjectAnswer)
	if err != nil {
		return ObjectWithStatus{}, err
	}
	return decodeWithStatus(scopeOf(kind, key), body)
}

// List implements store.Reader. A list of all kinds sends one request per kind. The
// first sets the revision, and the others request exactly that revision.
func (c *Client) List(ctx context.Context, scope store.Scope, opts store.ListOptions) (*store.List, error) {
	list, err := c.ListWithStatuses(ctx, scope, opts)
	if err != nil {
		return nil, err
	}
	return list.Objects(), nil
}

// ListWithStatuses is List with the status of each object.
func (c *Client) ListWithStatuses(ctx context.Context, scope store.Scope, opts store.ListOptions) (*ListWithStatus, error) {
	return c.listWithStatuses(ctx, InScope(scope), opts)
}

// listKind lists the objects of one kind. It takes their weight from room.
func (c *Client) listKind(ctx context.Context, kind *schema.Kind, what Selection, opts store.ListOptions, room *int) (*ListWithStatus, error) {
	query := what.query()
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
	r := request{method: http.MethodGet, url: c.url(kind, what.Namespace, "", query)}
	list := listReader{kind: kind, what: what, opts: opts, room: room}
	err := c.receive(ctx, r, maxListAnswer, func(in io.Reader) error {
		if err := list.read(in); err != nil {
			return fmt.Errorf("the server's list, in answer to GET %s: %w", r.url, err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &list.list, nil
}

// Revision implements store.Reader. The HTTP API has no request for it, so a list that
// selects nothing returns its revision.
func (c *Client) Revision(ctx context.Context) (int64, error) {
	page, err := c.ListWithStatuses(ctx, store.Scope{Kind: schema.Kinds()[0], Name: noSuchName}, store.ListOptions{})
	if err != nil {
		return 0, err
	}
	return page.Revision, nil
}

// noSuchName is an invalid name for an object, so it selects nothing.
const noSuchName = "-"

// atLeast encodes a bound: "0" means any revision in the Kubernetes API.
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

func kindOf(key schema.Key) (*schema.Kind, error) {
	kind, ok := schema.KindByName(key.Kind)
	if !ok {
		return nil, &store.Error{Kind: store.ErrInvalid, Key: key, Detail: fmt.Sprintf(
			"there is no kind %q; %s", key.Kind, schema.Suggest(key.Kind, schema.KindNames(), "there are"))}
	}
	return kind, nil
}

func invalid(detail string) error {
	return &store.Error{Kind: store.ErrInvalid, Detail: detail}
}
