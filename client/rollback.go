package client

import (
	"context"
	"iter"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

// Rollback makes an object, or all of a namespace, what it was at a revision, in
// one transaction. It answers what was done for it, store.ErrConflict if
// somebody else changed one of the objects meanwhile, and store.ErrTooLarge if more
// objects would change than one transaction takes.
func (c *Client) Rollback(ctx context.Context, scope store.Scope, revision int64) ([]Result, error) {
	return c.transact(ctx, registry+"rollbacks", rollbackOf(scope, revision))
}

func rollbackOf(scope store.Scope, revision int64) map[string]any {
	body := map[string]any{"revision": revision}
	for what, name := range named(scope) {
		body[what] = name
	}
	return body
}

// RollbackStep is what one step of a rollback did.
type RollbackStep struct {
	Results []Result
	// Undone are the objects that are left as they are.
	Undone []Undone
	// Remaining is how many objects are still to be changed, as far as they were
	// counted.
	Remaining int
	// Last says that no step follows.
	Last bool
}

// Undone is an object that a rollback leaves as it is, and why.
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

// RollbackInSteps makes an object, or all of a namespace of any size, what it was at
// a revision. What fits into one transaction is one, as with Rollback. Else each step
// is a transaction: objects are written before those that refer to them, and deleted
// after them. An object that somebody else changes after the begin is left as it is,
// and is among those that are undone.
//
// A step changes something when it is asked for. An error ends them, and what the
// steps before did stays done. Another rollback to the same revision does the rest.
func (c *Client) RollbackInSteps(ctx context.Context, scope store.Scope, revision int64) iter.Seq2[*RollbackStep, error] {
	return func(yield func(*RollbackStep, error) bool) {
		body := rollbackOf(scope, revision)
		body["steps"] = true
		for {
			step, next, err := c.rollbackStep(ctx, body)
			if !yield(step, err) || err != nil || next == "" {
				return
			}
			body["continue"] = next
		}
	}
}

func (c *Client) rollbackStep(ctx context.Context, body any) (step *RollbackStep, next string, err error) {
	w, err := c.postTransaction(ctx, registry+"rollbacks", body)
	if err != nil {
		return nil, "", err
	}
	step = &RollbackStep{Last: w.Metadata.Continue == ""}
	if step.Results, err = w.results(); err != nil {
		return nil, "", err
	}
	for _, u := range w.Undone {
		step.Undone = append(step.Undone, Undone{schema.Key{Kind: u.Kind, Namespace: u.Namespace, Name: u.Name}, u.Reason, u.Message})
	}
	if w.Metadata.RemainingItemCount != nil {
		step.Remaining = int(*w.Metadata.RemainingItemCount)
	}
	return step, w.Metadata.Continue, nil
}
