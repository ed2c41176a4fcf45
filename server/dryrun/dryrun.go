// Package dryrun has a store whose writes do everything except write.
package dryrun

import (
	"context"
	"errors"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

// Store is a store whose writes do everything except write. Each write is checked against
// the current state. Its result is that of the real write, except that it keeps the
// resourceVersion of the stored object. New puts the same checks in front of it as the
// store has.
type Store struct {
	store.Reader
	store.Historian
	ops int // at most in a transaction
}

// New returns a store that tries writes to the store of without doing them. A transaction
// has at most ops operations.
func New(of store.Interface, ops int) store.Interface {
	return store.Strict(Unchecked(of, ops))
}

// Unchecked is New without the checks of store.Strict.
func Unchecked(of store.Interface, ops int) Store { return Store{of, of, ops} }

// Create implements store.Interface.
func (s Store) Create(ctx context.Context, obj *schema.Object) (*schema.Object, error) {
	return s.Evaluate(ctx, store.Op{Verb: store.OpCreate, Object: obj})
}

// Update implements store.Interface.
func (s Store) Update(ctx context.Context, obj *schema.Object) (*schema.Object, error) {
	return s.Evaluate(ctx, store.Op{Verb: store.OpUpdate, Object: obj})
}

// UpdateFunc implements store.Interface.
func (s Store) UpdateFunc(ctx context.Context, key schema.Key, change store.Change) (*schema.Object, error) {
	return s.Evaluate(ctx, store.Op{Verb: store.OpUpdate, Key: key, Change: change})
}

// Delete implements store.Interface.
func (s Store) Delete(ctx context.Context, key schema.Key, pre store.Preconditions) (*schema.Object, error) {
	return s.Evaluate(ctx, store.Op{Verb: store.OpDelete, Key: key, Pre: pre})
}

// Txn implements store.Interface.
func (s Store) Txn(ctx context.Context, ops []store.Op) ([]*schema.Object, error) {
	if err := store.CheckLimit(ops, s.ops); err != nil {
		return nil, err
	}
	results := make([]*schema.Object, len(ops))
	for i, op := range ops {
		if err := store.Overdue(ctx); err != nil {
			return nil, err
		}
		result, err := s.Evaluate(ctx, op)
		if err != nil {
			return nil, store.AtIndex(err, i)
		}
		results[i] = result
	}
	return results, nil
}

// Evaluate returns the result of one operation by itself.
func (s Store) Evaluate(ctx context.Context, op store.Op) (*schema.Object, error) {
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
func (s Store) current(ctx context.Context, key schema.Key) (*schema.Object, error) {
	obj, err := s.Get(ctx, key, store.ReadOptions{})
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	return obj, err
}
