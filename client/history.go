package client

import (
	"context"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

// History keeps the contract of store.Historian.
func (c *Client) History(ctx context.Context, key schema.Key) ([]store.Version, error) {
	kind, err := kindOf(key)
	if err != nil {
		return nil, err
	}
	var w struct {
		Items []wireVersion `json:"items"`
	}
	at := c.url(kind, key.Namespace, key.Name, nil) + "/history"
	if err := c.exchange(ctx, request{method: http.MethodGet, url: at}, &w); err != nil {
		return nil, err
	}
	var out []store.Version
	for _, item := range w.Items {
		v, err := item.version(kind)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

type wireVersion struct {
	Revision    string      `json:"revision"`
	Verb        store.Verb  `json:"verb"`
	Time        time.Time   `json:"time"`
	User        string      `json:"user"`
	Program     string      `json:"program"`
	Transaction string      `json:"transaction"`
	Object      *wireObject `json:"object"`
	Lost        bool        `json:"lost"`
	AbsentSince string      `json:"absentSince"`
}

// version leaves out of the change what the state before was: that is the next
// version.
func (w wireVersion) version(kind *schema.Kind) (store.Version, error) {
	revision, err := parseRevision(w.Revision)
	if err != nil {
		return store.Version{}, err
	}
	v := store.Version{Revision: revision, Lost: w.Lost}
	if w.AbsentSince != "" {
		if v.AbsentSince, err = parseRevision(w.AbsentSince); err != nil {
			return store.Version{}, err
		}
	}
	if w.Transaction != "" {
		v.Change = &store.Record{
			Revision: revision, Verb: w.Verb, Time: w.Time, Transaction: w.Transaction,
			Author: store.Author{User: w.User, Program: w.Program},
		}
	}
	if w.Object != nil {
		v.Object, err = w.Object.object(kind)
	}
	return v, err
}

// Changes keeps the contract of store.Historian.
func (c *Client) Changes(ctx context.Context, scope store.Scope, revision int64) ([]store.Difference, error) {
	q := url.Values{"since": {strconv.FormatInt(revision, 10)}}
	for what, name := range named(scope) {
		q.Set(what, name)
	}
	var w struct {
		Items []struct {
			Kind      string      `json:"kind"`
			Namespace string      `json:"namespace"`
			Name      string      `json:"name"`
			Then      *wireObject `json:"then"`
			Now       *wireObject `json:"now"`

			Unreadable *wireUnreadable `json:"unreadable"`
		} `json:"items"`
	}
	if err := c.ask(ctx, registry+"changes", q, &w); err != nil {
		return nil, err
	}
	var out []store.Difference
	var err error
	for _, item := range w.Items {
		d := store.Difference{Key: schema.Key{Kind: item.Kind, Namespace: item.Namespace, Name: item.Name}}
		if item.Then != nil {
			if d.Then, err = item.Then.known(); err != nil {
				return nil, err
			}
		}
		if item.Now != nil {
			if d.Now, err = item.Now.known(); err != nil {
				return nil, err
			}
		}
		if item.Unreadable != nil {
			if d.Unreadable, err = item.Unreadable.of(d.Key); err != nil {
				return nil, err
			}
		}
		out = append(out, d)
	}
	return out, nil
}

// wireUnreadable is a stored value that is no object.
type wireUnreadable struct {
	Revision string `json:"revision"`
	Why      string `json:"why"`
}

func (w wireUnreadable) of(key schema.Key) (*store.Unreadable, error) {
	revision, err := parseRevision(w.Revision)
	return &store.Unreadable{Key: key, Revision: revision, Why: w.Why}, err
}

// Rollback makes an object, or all of a namespace, what it was at a revision, in
// one transaction. It answers what was done for it, and store.ErrConflict if
// somebody else changed one of the objects meanwhile.
func (c *Client) Rollback(ctx context.Context, scope store.Scope, revision int64) ([]Result, error) {
	body := map[string]any{"revision": revision}
	for what, name := range named(scope) {
		body[what] = name
	}
	return c.transact(ctx, registry+"rollbacks", body)
}

// named is what a scope names, in the words of the server, which refuses empty names.
func named(scope store.Scope) map[string]string {
	names := map[string]string{"namespace": scope.Namespace, "name": scope.Name}
	if scope.Kind != nil {
		names["kind"] = scope.Kind.Kind
	}
	maps.DeleteFunc(names, func(_, name string) bool { return name == "" })
	return names
}
