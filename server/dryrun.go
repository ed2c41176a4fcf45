package server

import (
	"context"
	"errors"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

// rehearsal is a store whose writes do everything but write: the same checks
// against the stored state, the same result, less its resourceVersion.
type rehearsal struct{ store.Interface }

func (s rehearsal) Create(ctx context.Context, obj *schema.Object) (*schema.Object, error) {
	return s.apply(ctx, store.Op{Verb: store.OpCreate, Object: obj})
}

func (s rehearsal) Update(ctx context.Context, obj *schema.Object) (*schema.Object, error) {
	return s.apply(ctx, store.Op{Verb: store.OpUpdate, Object: obj})
}

func (s rehearsal) Delete(ctx context.Context, key schema.Key, pre store.Preconditions) (*schema.Object, error) {
	current, err := s.current(ctx, key)
	if err != nil {
		return nil, err
	}
	_, err = store.Op{Verb: store.OpDelete, Key: key, Pre: pre}.Apply(current)
	return current, err
}

func (s rehearsal) apply(ctx context.Context, op store.Op) (*schema.Object, error) {
	if problems := schema.Validate(op.Object); problems.Err() != nil {
		return nil, &store.Error{Kind: store.ErrInvalid, Key: op.Target(), Problems: problems.Errors()}
	}
	current, err := s.current(ctx, op.Target())
	if err != nil {
		return nil, err
	}
	return op.Apply(current)
}

// current is the stored object, nil when there is none.
func (s rehearsal) current(ctx context.Context, key schema.Key) (*schema.Object, error) {
	obj, err := s.Get(ctx, key, store.ReadOptions{})
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	return obj, err
}
