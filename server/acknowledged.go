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
	done, err := a.Interface.Create(ctx, o)
	return a.done(ctx, nil, done, err)
}

func (a acknowledging) Update(ctx context.Context, o *schema.Object) (*schema.Object, error) {
	done, err := a.Interface.Update(ctx, o)
	return a.done(ctx, nil, done, err)
}

func (a acknowledging) UpdateFunc(ctx context.Context, key schema.Key, change store.Change) (*schema.Object, error) {
	var before *schema.Object
	done, err := a.Interface.UpdateFunc(ctx, key, func(stored *schema.Object) (*schema.Object, error) {
		before = stored
		return change(stored)
	})
	return a.done(ctx, before, done, err)
}

func (a acknowledging) Delete(ctx context.Context, key schema.Key, pre store.Preconditions) (*schema.Object, error) {
	done, err := a.Interface.Delete(ctx, key, pre)
	return a.done(ctx, nil, done, err)
}

func (a acknowledging) Txn(ctx context.Context, ops []store.Op) ([]*schema.Object, error) {
	done, err := a.Interface.Txn(ctx, ops)
	if err != nil {
		return nil, err
	}
	newest := int64(0)
	for _, o := range done {
		newest = max(newest, o.Revision())
		noteChange(ctx, nil, o)
	}
	a.acknowledged(newest)
	return done, nil
}

func (a acknowledging) done(ctx context.Context, before, o *schema.Object, err error) (*schema.Object, error) {
	if err == nil {
		noteChange(ctx, before, o)
		a.acknowledged(o.Revision())
	}
	return o, err
}

func (a acknowledging) acknowledged(revision int64) {
	if a.to != nil {
		a.to.Acknowledged(revision)
	}
}

// noteChange adds a written object to the event of the request. before may be nil.
func noteChange(ctx context.Context, before, after *schema.Object) {
	e := audit.Of(ctx)
	if e == nil {
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
		found, _ := p.Check(ctx, discovery.Written{Changes: changes, DryRun: dryRun})
		return found
	}
}
