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
	for try := 0; ; try++ {
		if try > 0 && !c.pause(ctx, conflictPause(try)) {
			return nil, context.Cause(ctx)
		}
		steps, again, err := c.steps(ctx, ops)
		if err != nil {
			return nil, err
		}
		results, err := c.transact(ctx, registry+"transactions", map[string]any{"operations": steps})
		if e, ok := errors.AsType[*store.Error](err); ok && overtaken(err) && again[e.Index] {
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

// overtaken: the object came, went or changed since it was read.
func overtaken(err error) bool {
	return errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrExists) || errors.Is(err, store.ErrNotFound)
}

// changed is what the change of an operation makes of the object as it is now, to be
// written in its place only, and whether it is to be made again when somebody else
// was faster.
func (c *Client) changed(ctx context.Context, op store.Op) (next *schema.Object, again bool, err error) {
	stored, err := c.Get(ctx, op.Key, store.ReadOptions{})
	if op.Verb == store.OpApply && errors.Is(err, store.ErrNotFound) {
		stored, err = nil, nil
	}
	if err == nil {
		next, err = basedOn(op.Key, stored, op.Change)
	}
	return next, err == nil && isBasedOn(next, stored), err
}

// Result is what one operation of a transaction did: Object is the state since,
// or the last one with the revision of the deletion.
type Result struct {
	Verb   store.Verb
	Object *schema.Object
}

// transact posts what is answered with the results of a transaction.
func (c *Client) transact(ctx context.Context, path string, body any) ([]Result, error) {
	w, err := c.postTransaction(ctx, path, body)
	if err != nil {
		return nil, err
	}
	return w.results()
}

func (c *Client) postTransaction(ctx context.Context, path string, body any) (w wireTransaction, err error) {
	text, err := json.Marshal(body)
	if err != nil {
		return w, fmt.Errorf("encode transaction: %w", err)
	}
	at := c.at(path, c.writeQuery())
	return w, c.exchange(ctx, request{method: http.MethodPost, url: at, body: text, contentType: jsonType}, &w)
}

// wireTransaction is what a transaction, or a step of a rollback, is answered with.
type wireTransaction struct {
	Metadata metav1.ListMeta `json:"metadata"`
	Results  []struct {
		Verb   store.Verb `json:"verb"`
		Object wireObject `json:"object"`
	} `json:"results"`
	Undone []wireUndone `json:"undone"`
}

func (w wireTransaction) results() (done []Result, err error) {
	done = make([]Result, len(w.Results))
	for i, result := range w.Results {
		done[i].Verb = result.Verb
		if done[i].Object, err = result.Object.known(); err != nil {
			return nil, err
		}
	}
	return done, nil
}
