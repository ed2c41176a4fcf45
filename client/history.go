package client

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

// History implements store.Historian.
func (c *Client) History(ctx context.Context, key schema.Key) ([]store.Version, error) {
	kind, err := kindOf(key)
	if err != nil {
		return nil, err
	}
	var w struct {
		Items []wireVersion `json:"items"`
	}
	at := c.url(kind, key.Namespace, key.Name, nil) + "/history"
	check := func() error { return member("items", w.Items != nil) }
	if err := c.exchange(ctx, request{method: http.MethodGet, url: at}, &w, check); err != nil {
		return nil, err
	}
	var out []store.Version
	for _, item := range w.Items {
		v, err := item.version(kind)
		if err == nil && v.Object != nil {
			err = within(scopeOf(kind, key), v.Object)
		}
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
	UserAgent   string      `json:"userAgent"`
	Transaction string      `json:"transaction"`
	Object      *wireObject `json:"object"`
	Lost        bool        `json:"lost"`
	AbsentSince string      `json:"absentSince"`
}

// version converts w. It leaves Before of the change empty, because that state is the
// next version.
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
			Author: store.Author{User: w.User, UserAgent: w.UserAgent},
		}
	}
	if w.Object != nil {
		v.Object, err = w.Object.object(kind)
	}
	return v, err
}

// Changes implements store.Historian.
func (c *Client) Changes(ctx context.Context, scope store.Scope, revision int64) ([]store.Difference, error) {
	return store.AllChanges(ctx, &weighedChanges{c, c.maxWeight}, scope, revision)
}

// weighedChanges fails once its pages of changes together take more memory than is left.
type weighedChanges struct {
	*Client
	left int
}

func (w *weighedChanges) ChangesPage(ctx context.Context, scope store.Scope, opts store.ChangesOptions) (page []store.Difference, more bool, err error) {
	page, more, err = w.Client.ChangesPage(ctx, scope, opts)
	for _, d := range page {
		w.left -= len(d.Key.Namespace) + len(d.Key.Name) + weightOf(d.Then) + weightOf(d.Now)
		if d.Unreadable != nil {
			w.left -= len(d.Unreadable.Why)
		}
	}
	if w.left < 0 {
		return nil, false, &store.Error{Kind: store.ErrTooLarge, Detail: fmt.Sprintf(
			"the changes since revision %d: %v: ask for pages, or for one kind", opts.Since, errTooHeavy)}
	}
	return page, more, err
}

// ChangesPage implements store.Historian.
func (c *Client) ChangesPage(ctx context.Context, scope store.Scope, opts store.ChangesOptions) (page []store.Difference, more bool, err error) {
	q := url.Values{"since": {strconv.FormatInt(opts.Since, 10)}, "limit": {strconv.Itoa(opts.Limit)}}
	if opts.After != (schema.Key{}) {
		q.Set("continue", store.Continue{After: opts.After}.Token())
	}
	w, err := c.askChanges(ctx, scope, q)
	if err != nil {
		return nil, false, err
	}
	page, err = w.differences(scope)
	return page, w.Metadata.Continue != "", err
}

func (c *Client) askChanges(ctx context.Context, scope store.Scope, q url.Values) (w wireChanges, err error) {
	for what, name := range named(scope) {
		q.Set(what, name)
	}
	err = c.ask(ctx, registry+"changes", q, &w, func() error { return member("items", w.Items != nil) })
	return w, err
}

type wireChanges struct {
	Metadata struct {
		Continue string `json:"continue"`
	} `json:"metadata"`
	Items []wireDifference `json:"items"`
}

func (w wireChanges) differences(scope store.Scope) ([]store.Difference, error) {
	var out []store.Difference
	for _, item := range w.Items {
		d, err := item.difference()
		if err != nil {
			return nil, err
		}
		if !scope.Contains(d.Key) {
			return nil, fmt.Errorf("the server answered with a change of %s, which was not asked for", d.Key)
		}
		out = append(out, d)
	}
	return out, nil
}

type wireDifference struct {
	Kind      string      `json:"kind"`
	Namespace string      `json:"namespace"`
	Name      string      `json:"name"`
	Then      *wireObject `json:"then"`
	Now       *wireObject `json:"now"`
	Lost      bool        `json:"lost"`
	Revision  string      `json:"revision"`

	Unreadable *wireUnreadable `json:"unreadable"`
}

func (w wireDifference) difference() (d store.Difference, err error) {
	d = store.Difference{Key: schema.Key{Kind: w.Kind, Namespace: w.Namespace, Name: w.Name}, Lost: w.Lost}
	if d.Revision, err = parseRevision(w.Revision); err != nil {
		return d, err
	}
	if w.Then != nil {
		if d.Then, err = w.Then.keyed(d.Key); err != nil {
			return d, err
		}
	}
	if w.Now != nil {
		if d.Now, err = w.Now.keyed(d.Key); err != nil {
			return d, err
		}
	}
	if w.Unreadable != nil {
		d.Unreadable, err = w.Unreadable.of(d.Key)
	}
	return d, err
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

// named returns the fields of a scope as the server names them. It omits empty ones,
// which the server refuses.
func named(scope store.Scope) map[string]string {
	names := map[string]string{"namespace": scope.Namespace, "name": scope.Name}
	if scope.Kind != nil {
		names["kind"] = scope.Kind.Kind
	}
	maps.DeleteFunc(names, func(_, name string) bool { return name == "" })
	return names
}
