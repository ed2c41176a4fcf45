package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

// wireOp is a step of a transaction as the server reads it.
type wireOp struct {
	Verb      store.Verb      `json:"verb"`
	Object    json.RawMessage `json:"object,omitempty"`
	Kind      string          `json:"kind,omitempty"`
	Namespace string          `json:"namespace,omitempty"`
	Name      string          `json:"name,omitempty"`

	Preconditions *metav1.Preconditions `json:"preconditions,omitempty"`
}

// Txn keeps the contract of store.Interface. An update by function is done with
// what the function makes of the object as it is read before, on condition that
// it is still that one, and tried again if only that fails.
func (c *Client) Txn(ctx context.Context, ops []store.Op) ([]*schema.Object, error) {
	if err := store.CheckOps(ops); err != nil || len(ops) == 0 {
		return nil, err
	}
	for {
		steps, again, err := c.steps(ctx, ops)
		if err != nil {
			return nil, err
		}
		results, err := c.transact(ctx, registry+"transactions", map[string]any{"operations": steps})
		var e *store.Error
		overtaken := errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrExists)
		if overtaken && errors.As(err, &e) && again[e.Index] {
			continue
		}
		if err != nil {
			return nil, err
		}
		done := make([]*schema.Object, len(results))
		for i, r := range results {
			done[i] = r.Object
		}
		return done, nil
	}
}

// steps are operations as they go over the wire; again tells those that may be
// tried again when somebody else was faster.
func (c *Client) steps(ctx context.Context, ops []store.Op) (steps []wireOp, again []bool, err error) {
	steps, again = make([]wireOp, len(ops)), make([]bool, len(ops))
	for i, op := range ops {
		obj := op.Object
		steps[i].Verb = op.Verb
		if op.Change != nil {
			if obj, again[i], err = c.changed(ctx, op); err != nil {
				return nil, nil, store.AtIndex(err, i)
			}
			if obj.Meta.ResourceVersion == "" {
				steps[i].Verb = store.OpCreate
			}
		}
		if obj != nil {
			steps[i].Object = obj.Written()
			continue
		}
		steps[i].Kind, steps[i].Namespace, steps[i].Name = op.Key.Kind, op.Key.Namespace, op.Key.Name
		if op.Pre != (store.Preconditions{}) {
			steps[i].Preconditions = deleteOptions(op.Pre).Preconditions
		}
	}
	return steps, again, nil
}

// changed is what a change makes of an object, without a version where there is
// none, and whether it leaves to us which version it is for.
func (c *Client) changed(ctx context.Context, op store.Op) (*schema.Object, bool, error) {
	current, err := c.Get(ctx, op.Key, store.ReadOptions{})
	if op.Verb == store.OpApply && errors.Is(err, store.ErrNotFound) {
		next, err := op.Change(nil)
		return next, err == nil && next.Meta.ResourceVersion == "", err
	}
	if err != nil {
		return nil, false, err
	}
	next, err := op.Change(current)
	if err != nil || next.Meta.ResourceVersion != "" && next.Meta.ResourceVersion != current.Meta.ResourceVersion {
		return next, false, err
	}
	meta := next.Meta
	meta.ResourceVersion = current.Meta.ResourceVersion
	next, err = next.WithMeta(meta)
	return next, true, err
}

// Result is what one operation of a transaction did: Object is the state since,
// or the last one with the revision of the deletion.
type Result struct {
	Verb   store.Verb
	Object *schema.Object
}

// transact posts what is answered with the results of a transaction.
func (c *Client) transact(ctx context.Context, path string, body any) ([]Result, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("encode transaction: %w", err)
	}
	var w struct {
		Results []struct {
			Verb   store.Verb `json:"verb"`
			Object wireObject `json:"object"`
		} `json:"results"`
	}
	at := c.at(path, c.writeQuery())
	if err := c.exchange(ctx, request{method: http.MethodPost, url: at, body: text, contentType: jsonType}, &w); err != nil {
		return nil, err
	}
	done := make([]Result, len(w.Results))
	for i, result := range w.Results {
		done[i].Verb = result.Verb
		if done[i].Object, err = result.Object.known(); err != nil {
			return nil, err
		}
	}
	return done, nil
}
