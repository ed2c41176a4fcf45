package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

// Text is an object as its author wrote it. Body is sent unchanged. Kind, Namespace and
// Name determine the URL and must agree with Body.
type Text struct {
	Kind      *schema.Kind
	Namespace string
	// Name may be empty for a create.
	Name string
	// Body is one YAML or JSON document.
	Body []byte
	// ContentType is the type of Body; "" means application/yaml.
	ContentType string
}

func encoded(o *schema.Object) Text {
	return Text{Kind: o.Kind, Namespace: o.Meta.Namespace, Name: o.Meta.Name, Body: o.Written(), ContentType: jsonType}
}

// Create implements store.Interface.
func (c *Client) Create(ctx context.Context, obj *schema.Object) (*schema.Object, error) {
	return c.CreateText(ctx, encoded(obj))
}

// CreateText is Create for a text.
func (c *Client) CreateText(ctx context.Context, t Text) (*schema.Object, error) {
	return c.write(ctx, http.MethodPost, c.url(t.Kind, t.Namespace, "", c.writeQuery()), t)
}

// Update implements store.Interface.
func (c *Client) Update(ctx context.Context, obj *schema.Object) (*schema.Object, error) {
	return c.UpdateText(ctx, encoded(obj))
}

// UpdateText is Update for a text.
func (c *Client) UpdateText(ctx context.Context, t Text) (*schema.Object, error) {
	if t.Name == "" {
		return nil, invalid("an update needs a name")
	}
	return c.write(ctx, http.MethodPut, c.url(t.Kind, t.Namespace, t.Name, c.writeQuery()), t)
}

func (c *Client) writeQuery() url.Values {
	if !c.opts.DryRun {
		return nil
	}
	return url.Values{"dryRun": {metav1.DryRunAll}}
}

// UpdateFunc implements store.Interface. It reads and replaces the object until no
// other write comes in between.
func (c *Client) UpdateFunc(ctx context.Context, key schema.Key, change store.Change) (*schema.Object, error) {
	for try := 0; ; try++ {
		if try > 0 && !c.pause(ctx, conflictPause(try)) {
			return nil, context.Cause(ctx)
		}
		stored, err := c.Get(ctx, key, store.ReadOptions{})
		if err != nil {
			return nil, err
		}
		next, err := basedOn(key, stored, change)
		if err != nil {
			return nil, err
		}
		updated, err := c.Update(ctx, next)
		if !errors.Is(err, store.ErrConflict) || !isBasedOn(next, stored) {
			return updated, err
		}
	}
}

// basedOn returns the result of change for the stored object of a key, nil if there is
// none. It is conditional on that object.
func basedOn(key schema.Key, stored *schema.Object, change store.Change) (*schema.Object, error) {
	next, err := change(stored)
	if err != nil {
		return nil, err
	}
	if next.Key() != key {
		return nil, invalid(fmt.Sprintf("a change cannot make %s of %s", next.Key(), key))
	}
	if stored == nil {
		return next, nil
	}
	meta := next.Meta
	meta.ResourceVersion = cmp.Or(meta.ResourceVersion, stored.Meta.ResourceVersion)
	meta.UID = cmp.Or(meta.UID, stored.Meta.UID)
	return next.WithMeta(meta)
}

// isBasedOn reports whether the result of a change is conditional on that stored
// version, and not on another one that the change itself has set.
func isBasedOn(next, stored *schema.Object) bool {
	if stored == nil {
		return next.Meta.ResourceVersion == ""
	}
	return next.Meta.ResourceVersion == stored.Meta.ResourceVersion && next.Meta.UID == stored.Meta.UID
}

func (c *Client) write(ctx context.Context, method, url string, t Text) (*schema.Object, error) {
	if t.ContentType == "" {
		t.ContentType = yamlType
	}
	body, err := c.call(ctx, request{method: method, url: url, body: t.Body, contentType: t.ContentType}, maxObjectAnswer)
	if err != nil {
		return nil, err
	}
	return decodeObject(store.Scope{Kind: t.Kind, Namespace: t.Namespace, Name: t.Name}, body)
}

// Delete implements store.Interface.
func (c *Client) Delete(ctx context.Context, key schema.Key, pre store.Preconditions) (*schema.Object, error) {
	kind, err := kindOf(key)
	if err != nil {
		return nil, err
	}
	if key.Name == "" {
		return nil, invalid("a delete needs a name")
	}
	r := request{method: http.MethodDelete, url: c.url(kind, key.Namespace, key.Name, c.writeQuery())}
	if pre != (store.Preconditions{}) {
		r.contentType = jsonType
		if r.body, err = json.Marshal(deleteOptions(pre)); err != nil {
			return nil, fmt.Errorf("encode preconditions: %w", err)
		}
	}
	body, err := c.call(ctx, r, maxObjectAnswer)
	if err != nil {
		return nil, err
	}
	return decodeObject(scopeOf(kind, key), body)
}

func deleteOptions(pre store.Preconditions) *metav1.DeleteOptions {
	opts := &metav1.DeleteOptions{
		TypeMeta:      metav1.TypeMeta{Kind: "DeleteOptions", APIVersion: "v1"},
		Preconditions: &metav1.Preconditions{},
	}
	if pre.UID != "" {
		uid := types.UID(pre.UID)
		opts.Preconditions.UID = &uid
	}
	if pre.ResourceVersion != "" {
		opts.Preconditions.ResourceVersion = &pre.ResourceVersion
	}
	return opts
}
