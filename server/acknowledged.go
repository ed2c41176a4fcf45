package server

import (
	"context"
	"slices"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/security/audit"
	"github.com/pilot-api/pilot-api/store"
)

// acknowledging is a store that reports each successful write, before it returns: its
// revision to discovery, and the objects to the event of the request.
type acknowledging struct {
	store.Interface
	to *discovery.Publisher // nil without proxies
}

// HistoryAtHand implements store.HistorianAtHand.
func (a acknowledging) HistoryAtHand(ctx context.Context, key schema.Key) ([]store.Version, error) {
	return store.HistoryAtHand(ctx, a.Interface, key)
}

func (a acknowledging) Create(ctx context.Context, o *schema.Object) (*schema.Object, error) {
	return a.one(ctx, func(ctx context.Context) (*schema.Object, error) { return a.Interface.Create(ctx, o) })
}

func (a acknowledging) Update(ctx context.Context, o *schema.Object) (*schema.Object, error) {
	return a.one(ctx, func(ctx context.Context) (*schema.Object, error) { return a.Interface.Update(ctx, o) })
}

func (a acknowledging) UpdateFunc(ctx context.Context, key schema.Key, change store.Change) (*schema.Object, error) {
	return a.one(ctx, func(ctx context.Context) (*schema.Object, error) { return a.Interface.UpdateFunc(ctx, key, change) })
}

func (a acknowledging) Delete(ctx context.Context, key schema.Key, pre store.Preconditions) (*schema.Object, error) {
	return a.one(ctx, func(ctx context.Context) (*schema.Object, error) { return a.Interface.Delete(ctx, key, pre) })
}

func (a acknowledging) Txn(ctx context.Context, ops []store.Op) ([]*schema.Object, error) {
	return a.all(ctx, func(ctx context.Context) ([]*schema.Object, error) { return a.Interface.Txn(ctx, ops) })
}

func (a acknowledging) one(ctx context.Context, write func(context.Context) (*schema.Object, error)) (*schema.Object, error) {
	return store.Single(a.all(ctx, func(ctx context.Context) ([]*schema.Object, error) {
		o, err := write(ctx)
		return []*schema.Object{o}, err
	}))
}

// all does a write and reports its results.
func (a acknowledging) all(ctx context.Context, write func(context.Context) ([]*schema.Object, error)) ([]*schema.Object, error) {
	replaced := &store.Replaced{}
	done, err := write(store.WithReplaced(ctx, replaced))
	if err != nil {
		return nil, err
	}
	newest := int64(0)
	for i, o := range done {
		newest = max(newest, o.Revision())
		var before *schema.Object
		if i < len(replaced.Before) {
			before = replaced.Before[i]
		}
		noteChange(ctx, before, o)
	}
	a.acknowledged(newest)
	return done, nil
}

func (a acknowledging) acknowledged(revision int64) {
	if a.to != nil {
		a.to.Acknowledged(revision)
	}
}

// noteChange adds a written object to the event of the request, unless the write changed
// nothing. before is nil for a new object.
func noteChange(ctx context.Context, before, after *schema.Object) {
	e := audit.Of(ctx)
	if e == nil || before != nil && before.Meta.ResourceVersion == after.Meta.ResourceVersion {
		return
	}
	change := audit.Change{Object: after.Key().String(), After: after.Meta.ResourceVersion}
	if before != nil {
		change.Before = before.Meta.ResourceVersion
	}
	e.AddChange(change)
}

// checkedBy returns the check of writes by discovery.
func checkedBy(p *discovery.Publisher) func(context.Context, []schema.Change, bool) diag.List {
	return func(ctx context.Context, changes []schema.Change, dryRun bool) diag.List {
		changes = slices.DeleteFunc(slices.Clone(changes), func(c schema.Change) bool { return c.After != nil && c.After.Kind.Flat })
		for i, c := range changes {
			changes[i] = schema.Change{Before: c.Before.WithoutStatus(), After: c.After.WithoutStatus()}
		}
		found, _ := p.Check(ctx, discovery.Written{Changes: changes, DryRun: dryRun})
		return found
	}
}
