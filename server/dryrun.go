package server

import (
	"context"
	"errors"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

// dryRunStore is a store whose writes do everything except write. They are checked
// against the current state, and the result is that of the real write, except that
// it keeps the stored object's resourceVersion. newDryRunStore puts the same checks
// in front of it as the store has.
type dryRunStore struct {
	store.Reader
	store.Historian
	ops int // at most in a transaction
}

func newDryRunStore(of store.Interface, ops int) store.Interface {
	return store.Strict(newDryRun(of, ops))
}

func newDryRun(of store.Interface, ops int) dryRunStore { return dryRunStore{of, of, ops} }

func (s dryRunStore) Create(ctx context.Context, obj *schema.Object) (*schema.Object, error) {
	return s.evaluate(ctx, store.Op{Verb: store.OpCreate, Object: obj})
}

func (s dryRunStore) Update(ctx context.Context, obj *schema.Object) (*schema.Object, error) {
	return s.evaluate(ctx, store.Op{Verb: store.OpUpdate, Object: obj})
}

func (s dryRunStore) UpdateFunc(ctx context.Context, key schema.Key, change store.Change) (*schema.Object, error) {
	return s.evaluate(ctx, store.Op{Verb: store.OpUpdate, Key: key, Change: change})
}

func (s dryRunStore) Delete(ctx context.Context, key schema.Key, pre store.Preconditions) (*schema.Object, error) {
	return s.evaluate(ctx, store.Op{Verb: store.OpDelete, Key: key, Pre: pre})
}

func (s dryRunStore) Txn(ctx context.Context, ops []store.Op) ([]*schema.Object, error) {
	if err := store.CheckLimit(ops, s.ops); err != nil {
		return nil, err
	}
	results := make([]*schema.Object, len(ops))
	for i, op := range ops {
		if err := store.Overdue(ctx); err != nil {
			return nil, err
		}
		result, err := s.evaluate(ctx, op)
		if err != nil {
			return nil, store.AtIndex(err, i)
		}
		results[i] = result
	}
	return results, nil
}

func (s dryRunStore) evaluate(ctx context.Context, op store.Op) (*schema.Object, error) {
	current, err := s.current(ctx, op.Target())
	if err != nil {
		return nil, err
	}
	out, err := op.Evaluate(current, store.AuthorOf(ctx))
	if err != nil {
		return nil, err
	}
	return out.Answer, nil
}

// current returns the stored object, or nil if there is none.
func (s dryRunStore) current(ctx context.Context, key schema.Key) (*schema.Object, error) {
	obj, err := s.Get(ctx, key, store.ReadOptions{})
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	return obj, err
}
