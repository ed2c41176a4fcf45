package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

// wireOp is an operation of a transaction in the server's format.
type wireOp struct {
	Verb   store.Verb      `json:"verb"`
	Object json.RawMessage `json:"object,omitempty"`
	Target *wireTarget     `json:"target,omitempty"`

	Preconditions *metav1.Preconditions `json:"preconditions,omitempty"`
}

// wireTarget names the object of an operation.
type wireTarget struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
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
		results, err := c.transact(ctx, "Transaction", map[string]any{"operations": steps})
		if err == nil {
			err = areResultsOf(ops, results)
		}
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

// areResultsOf returns an error unless there is one result for each operation.
func areResultsOf(ops []store.Op, results []Result) error {
	if len(results) != len(ops) {
		return fmt.Errorf("the server's answer to a Transaction of %d operations has %d results", len(ops), len(results))
	}
	for i, op := range ops {
		target := op.Target()
		kind, err := kindOf(target)
		if err == nil {
			err = within(scopeOf(kind, target), results[i].Object)
		}
		if err != nil {
			return fmt.Errorf("result %d of a Transaction: %w", i, err)
		}
	}
	return nil
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
		steps[i].Target = &wireTarget{op.Key.Kind, op.Key.Namespace, op.Key.Name}
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
		err = op.CheckPre(stored)
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

// transact creates a Transaction or a Rollback and returns its results.
func (c *Client) transact(ctx context.Context, kind string, spec any) ([]Result, error) {
	status, err := c.act(ctx, kind, spec)
	if err != nil {
		return nil, err
	}
	return status.results()
}

// act creates an object that makes the server do something, and returns its status.
func (c *Client) act(ctx context.Context, kind string, spec any) (status wireStatus, err error) {
	text, err := json.Marshal(map[string]any{"apiVersion": registryVersion, "kind": kind, "spec": spec})
	if err != nil {
		return status, fmt.Errorf("encode %s: %w", kind, err)
	}
	var answer struct {
		Status *wireStatus `json:"status"`
	}
	at := c.at(registry+strings.ToLower(kind)+"s", c.writeQuery())
	r := request{method: http.MethodPost, url: at, body: text, contentType: jsonType}
	err = c.exchange(ctx, r, &answer, func() error {
		return cmp.Or(member("status", answer.Status != nil), member("results", answer.Status != nil && answer.Status.Results != nil))
	})
	if err != nil {
		return status, err
	}
	return *answer.Status, nil
}

// wireStatus is the status of a transaction or of a step of a rollback.
type wireStatus struct {
	Results []struct {
		Verb   store.Verb `json:"verb"`
		Object wireObject `json:"object"`
	} `json:"results"`
	Undone    []wireUndone `json:"undone"`
	Continue  string       `json:"continue"`
	Remaining int          `json:"remaining"`
}

func (w wireStatus) results() (done []Result, err error) {
	done = make([]Result, len(w.Results))
	for i, result := range w.Results {
		done[i].Verb = result.Verb
		if done[i].Object, err = result.Object.known(); err != nil {
			return nil, err
		}
	}
	return done, nil
}
