package store

import (
	"context"

	"github.com/pilot-api/pilot-api/schema"
)

// Verbs are the writes of Interface for one object, each as a transaction of one
// operation. A store embeds Verbs built from its own Txn.
type Verbs struct {
	txn func(context.Context, []Op) ([]*schema.Object, error)
}

// VerbsOf returns the Verbs that call txn, a store's Interface.Txn.
func VerbsOf(txn func(context.Context, []Op) ([]*schema.Object, error)) Verbs { return Verbs{txn} }

// Create implements Interface.
func (v Verbs) Create(ctx context.Context, obj *schema.Object) (*schema.Object, error) {
	return Single(v.txn(ctx, []Op{{Verb: OpCreate, Object: obj}}))
}

// Update implements Interface.
func (v Verbs) Update(ctx context.Context, obj *schema.Object) (*schema.Object, error) {
	return Single(v.txn(ctx, []Op{{Verb: OpUpdate, Object: obj}}))
}

// UpdateFunc implements Interface.
func (v Verbs) UpdateFunc(ctx context.Context, key schema.Key, change Change) (*schema.Object, error) {
	return Single(v.txn(ctx, []Op{{Verb: OpUpdate, Key: key, Change: change}}))
}

// Delete implements Interface.
func (v Verbs) Delete(ctx context.Context, key schema.Key, pre Preconditions) (*schema.Object, error) {
	return Single(v.txn(ctx, []Op{{Verb: OpDelete, Key: key, Pre: pre}}))
}

// Single returns the result of a transaction of one operation.
func Single(objs []*schema.Object, err error) (*schema.Object, error) {
	if err != nil {
		return nil, err
	}
	return objs[0], nil
}
