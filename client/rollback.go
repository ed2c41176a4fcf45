package client

import (
	"context"
	"fmt"
	"iter"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

// Rollback restores an object, or everything in a namespace, to its state at a
// revision, in one transaction, and returns the results. The error is store.ErrConflict
// if another client changed one of the objects meanwhile, and store.ErrTooLarge if more
// objects would change than one transaction accepts.
func (c *Client) Rollback(ctx context.Context, scope store.Scope, revision int64) ([]Result, error) {
	return c.transact(ctx, "Rollback", rollbackOf(scope, revision))
}

func rollbackOf(scope store.Scope, revision int64) map[string]any {
	spec := map[string]any{"revision": revision}
	for what, name := range named(scope) {
		spec[what] = name
	}
	return spec
}

// RollbackStep is the result of one step of a rollback.
type RollbackStep struct {
	Results []Result
	// Undone are the objects that the step leaves unchanged.
	Undone []Undone
	// Remaining is the number of objects still to be changed, as far as they were
	// counted.
	Remaining int
	// Last means that no step follows.
	Last bool
}

// Undone is an object that a rollback leaves unchanged, and the reason.
type Undone struct {
	Key     schema.Key
	Reason  string // one of the status reasons of Kubernetes
	Message string
}

type wireUndone struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Reason    string `json:"reason"`
	Message   string `json:"message"`
}

// RollbackInSteps restores an object, or everything in a namespace of any size, to its
// state at a revision. If the changes fit into one transaction, it makes one, as
// Rollback does. Otherwise each step is a transaction: objects are written before those
// that refer to them, and deleted after them. An object that another client changes
// after the start is left unchanged and is reported in Undone.
//
// A step is executed when the iterator requests it. An error ends the steps, and
// earlier steps stay done. Another rollback to the same revision does the rest.
func (c *Client) RollbackInSteps(ctx context.Context, scope store.Scope, revision int64) iter.Seq2[*RollbackStep, error] {
	return func(yield func(*RollbackStep, error) bool) {
		spec := rollbackOf(scope, revision)
		spec["steps"] = true
		for {
			step, next, err := c.rollbackStep(ctx, spec)
			if !yield(step, err) || err != nil || next == "" {
				return
			}
			if next == spec["continue"] {
				yield(nil, fmt.Errorf("the server's answer to a step of a rollback has the continue %q of the step before", next))
				return
			}
			spec["continue"] = next
		}
	}
}

func (c *Client) rollbackStep(ctx context.Context, spec any) (step *RollbackStep, next string, err error) {
	w, err := c.act(ctx, "Rollback", spec)
	if err != nil {
		return nil, "", err
	}
	step = &RollbackStep{Last: w.Continue == "", Remaining: w.Remaining}
	if step.Results, err = w.results(); err != nil {
		return nil, "", err
	}
	for _, u := range w.Undone {
		step.Undone = append(step.Undone, Undone{schema.Key{Kind: u.Kind, Namespace: u.Namespace, Name: u.Name}, u.Reason, u.Message})
	}
	return step, w.Continue, nil
}
