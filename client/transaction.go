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

// wireOp is an operation of a transaction in the server's format.
type wireOp struct {
	Verb      store.Verb      `json:"verb"`
	Object    json.RawMessage `json:"object,omitempty"`
	Kind      string          `json:"kind,omitempty"`
	Namespace string          `json:"namespace,omitempty"`
	Name      string          `json:"name,omitempty"`

	Preconditions *metav1.Preconditions `json:"preconditions,omitempty"`
}

// Txn implements store.Interface. For an update by function it reads the object, calls
// the function, and writes on condition that the object is unchanged. It retries if
// only that condition fails.
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

// steps returns the operations in wire format. again marks those that may be retried if
// another writer was faster.
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

// overtaken reports whether an object was created, deleted or changed since it was
// read.
func overtaken(err error) bool {
	return errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrExists) || errors.Is(err, store.ErrNotFound)
}

// changed reads the object of an operation and returns the result of its change,
// conditional on that object. again reports whether the change may be repeated if
// another writer was faster.
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

// Result is the result of one operation of a transaction. Object is the new state, or
// the last one with the revision of the deletion.
type Result struct {
	Verb   store.Verb
	Object *schema.Object
}

// transact posts a request whose answer has the results of a transaction.
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

// wireTransaction is the answer to a transaction or to a step of a rollback.
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
