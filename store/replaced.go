package store

import (
	"context"
	"slices"

	"github.com/pilot-api/pilot-api/schema"
)

// Replaced receives what one write replaced. Nothing else may use it until the write returns.
type Replaced struct {
	// Before has the states that the operations found, in their order; nil where there was no
	// object. It is nil if the write failed, or if the store does not say.
	Before []*schema.Object
}

type replacedKey struct{}

// WithReplaced returns a context for one write that fills r.
func WithReplaced(ctx context.Context, r *Replaced) context.Context {
	return context.WithValue(ctx, replacedKey{}, r)
}

// SetReplaced fills the Replaced of a context, if it has one. A store calls it when a write has
// succeeded.
func SetReplaced(ctx context.Context, before []*schema.Object) {
	if r, ok := ctx.Value(replacedKey{}).(*Replaced); ok {
		r.Before = slices.Clone(before)
	}
}
