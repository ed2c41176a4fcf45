// Package gate checks all writes: it is a store that refuses an object if the identity may
// write the kind but not this object. Single writes, patches, server-side apply,
// transactions, rollbacks and dry runs pass through it.
//
// It receives a write with the identity of its sender in the context. It passes the write
// on, or returns an error that answers 403.
//
//	gate.go   the store
//	hosts.go  rules for hosts of other namespaces, and for their Gateways
package gate

import (
	"context"
	"errors"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/security/authz"
	"github.com/pilot-api/pilot-api/security/identity"
	"github.com/pilot-api/pilot-api/store"
)

// Options configure a Gate.
type Options struct {
	Guard authz.Guard
	// Roles decides about writes of roles and bindings; nil if there are no roles. Then
	// everything passes.
	Roles *authz.Roles
	// Reads has the stored objects, as of a moment ago.
	Reads store.Reader
	// Hosts has the ServiceEntries that declare hosts, and Domain is the suffix of full
	// service names.
	Hosts  *Hosts
	Domain string
}

// Gate makes stores that refuse such writes. It is safe for concurrent use.
type Gate struct{ opts Options }

// New returns a Gate.
func New(opts Options) *Gate { return &Gate{opts} }

// Store returns a store that passes allowed writes on to another one. A nil Gate returns
// the other one.
func (g *Gate) Store(to store.Interface) store.Interface {
	if g == nil || g.opts.Roles == nil {
		return to
	}
	return gated{to, g}
}

type gated struct {
	store.Interface
	gate *Gate
}

// HistoryAtHand implements store.HistorianAtHand.
func (s gated) HistoryAtHand(ctx context.Context, key schema.Key) ([]store.Version, error) {
	return store.HistoryAtHand(ctx, s.Interface, key)
}

// Create implements store.Interface.
func (s gated) Create(ctx context.Context, o *schema.Object) (*schema.Object, error) {
	if err := s.gate.check(ctx, nil, o, nil); err != nil {
		return nil, err
	}
	return s.Interface.Create(ctx, o)
}

// Update implements store.Interface. It is checked against the object that it replaces, as
// UpdateFunc is. If it were checked against an earlier state, a write could restore rights
// that were taken away meanwhile.
func (s gated) Update(ctx context.Context, o *schema.Object) (*schema.Object, error) {
	done, err := s.UpdateFunc(ctx, o.Key(), always(o))
	if !errors.Is(err, store.ErrUnreadable) {
		return done, err
	}
	// What cannot be read gives nothing, and may be replaced.
	if err := s.gate.check(ctx, nil, o, nil); err != nil {
		return nil, err
	}
	return s.Interface.Update(ctx, o)
}

// always returns a change to an object, whatever is stored.
func always(o *schema.Object) store.Change {
	return func(*schema.Object) (*schema.Object, error) { return o, nil }
}

// UpdateFunc implements store.Interface.
func (s gated) UpdateFunc(ctx context.Context, key schema.Key, change store.Change) (*schema.Object, error) {
	return s.Interface.UpdateFunc(ctx, key, s.gate.checked(ctx, change, nil))
}

// Txn implements store.Interface.
func (s gated) Txn(ctx context.Context, ops []store.Op) ([]*schema.Object, error) {
	var beside []*schema.Object
	for _, op := range ops {
		if op.Object != nil && op.Verb != store.OpDelete {
			beside = append(beside, op.Object)
		}
	}
	checked := make([]store.Op, len(ops))
	for i, op := range ops {
		var err error
		if checked[i], err = s.gate.checkedOp(ctx, op, beside); err != nil {
			return nil, err
		}
	}
	return s.Interface.Txn(ctx, checked)
}

// checkedOp returns an operation that is checked, now or against the object that it replaces.
func (g *Gate) checkedOp(ctx context.Context, op store.Op, beside []*schema.Object) (store.Op, error) {
	switch {
	case op.Change != nil:
		op.Change = g.checked(ctx, op.Change, beside)
		return op, nil
	case op.Object == nil || op.Verb == store.OpDelete:
		return op, nil
	case g.replaces(ctx, op):
		return store.Op{Verb: store.OpUpdate, Key: op.Object.Key(), Change: g.checked(ctx, always(op.Object), beside)}, nil
	}
	return op, g.check(ctx, nil, op.Object, beside)
}

// replaces reports whether an operation with an object replaces a readable one, as far as was
// known a moment ago.
func (g *Gate) replaces(ctx context.Context, op store.Op) bool {
	if op.Verb == store.OpCreate {
		return false
	}
	_, err := g.opts.Reads.Get(ctx, op.Object.Key(), store.ReadOptions{AtLeast: store.Any})
	return err == nil || op.Verb == store.OpUpdate && !errors.Is(err, store.ErrUnreadable)
}

// checked returns a change whose result is checked.
func (g *Gate) checked(ctx context.Context, change store.Change, beside []*schema.Object) store.Change {
	return func(before *schema.Object) (*schema.Object, error) {
		after, err := change(before)
		if err != nil || after == nil {
			return after, err
		}
		return after, g.check(ctx, before, after, beside)
	}
}

// check returns an error unless the identity of ctx may write after in the place of before,
// nil for none.
func (g *Gate) check(ctx context.Context, before, after *schema.Object, beside []*schema.Object) error {
	if before == nil {
		// A patch or a PUT may create.
		if err := g.opts.Guard.Check(ctx, authz.On("create", after.Key())); err != nil {
			return err
		}
	}
	if err := g.opts.Roles.CheckWrite(ctx, identity.Of(ctx), before, after, beside); err != nil {
		return err
	}
	return g.checkHosts(ctx, before, after)
}
