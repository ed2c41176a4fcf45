package server

import (
	"context"
	"slices"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

// acknowledging is a store that reports the revision of each successful write to
// discovery before it returns.
type acknowledging struct {
	store.Interface
	to *discovery.Publisher
}

// HistoryAtHand implements store.HistorianAtHand.
func (a acknowledging) HistoryAtHand(ctx context.Context, key schema.Key) ([]store.Version, error) {
	return store.HistoryAtHand(ctx, a.Interface, key)
}

func (a acknowledging) Create(ctx context.Context, o *schema.Object) (*schema.Object, error) {
	return a.done(a.Interface.Create(ctx, o))
}

func (a acknowledging) Update(ctx context.Context, o *schema.Object) (*schema.Object, error) {
	return a.done(a.Interface.Update(ctx, o))
}

func (a acknowledging) UpdateFunc(ctx context.Context, key schema.Key, change store.Change) (*schema.Object, error) {
	return a.done(a.Interface.UpdateFunc(ctx, key, change))
}

func (a acknowledging) Delete(ctx context.Context, key schema.Key, pre store.Preconditions) (*schema.Object, error) {
	return a.done(a.Interface.Delete(ctx, key, pre))
}

func (a acknowledging) Txn(ctx context.Context, ops []store.Op) ([]*schema.Object, error) {
	done, err := a.Interface.Txn(ctx, ops)
	if err != nil {
		return nil, err
	}
	newest := int64(0)
	for _, o := range done {
		newest = max(newest, o.Revision())
	}
	a.to.Acknowledged(newest)
	return done, nil
}

func (a acknowledging) done(o *schema.Object, err error) (*schema.Object, error) {
	if err == nil {
		a.to.Acknowledged(o.Revision())
	}
	return o, err
}

// checkedBy returns the check of writes by discovery.
func checkedBy(p *discovery.Publisher) func(context.Context, []schema.Change, bool) diag.List {
	return func(ctx context.Context, changes []schema.Change, dryRun bool) diag.List {
		changes = slices.DeleteFunc(slices.Clone(changes), func(c schema.Change) bool { return c.After != nil && c.After.Kind.Flat })
		found, _ := p.Check(ctx, discovery.Written{Changes: changes, DryRun: dryRun})
		return found
	}
}
