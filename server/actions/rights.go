package actions

import (
	"context"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/security/authz"
	"github.com/pilot-api/pilot-api/store"
)

// allowOperations returns an error that names the operations that the caller has no right
// to. It reads nothing that is stored, so the error says nothing of what exists.
func (h *Handler) allowOperations(ctx context.Context, t *transaction) error {
	errs := make([]error, len(t.Spec.Operations))
	for i, op := range t.Spec.Operations {
		key := op.targetKey()
		for _, verb := range op.verbs() {
			if err := h.opts.Guard.Check(ctx, authz.On(verb, key)); err != nil {
				errs[i] = atOperation(err, i, key)
				break
			}
		}
	}
	return together(errs)
}

// verbs returns the rights that an operation needs, whatever is stored.
func (o operation) verbs() []string {
	switch {
	case o.owns():
		return []string{"patch", "create"}
	case o.Verb == "apply":
		return []string{"update", "create"}
	}
	return []string{o.Verb}
}

// rightful is a store whose transactions need the rights of their operations.
type rightful struct {
	store.Interface
	handler *Handler
}

// Txn implements store.Interface.
func (s rightful) Txn(ctx context.Context, ops []store.Op) ([]*schema.Object, error) {
	if err := s.handler.allowOps(ctx, ops); err != nil {
		return nil, err
	}
	return s.Interface.Txn(ctx, ops)
}

// allowOps is allowOperations for operations of the store.
func (h *Handler) allowOps(ctx context.Context, ops []store.Op) error {
	for _, op := range ops {
		verbs := []string{string(op.Verb)}
		if op.Verb == store.OpApply {
			verbs = []string{string(store.OpUpdate), string(store.OpCreate)}
		}
		for _, verb := range verbs {
			if err := h.opts.Guard.Check(ctx, authz.On(verb, op.Target())); err != nil {
				return err
			}
		}
	}
	return nil
}
