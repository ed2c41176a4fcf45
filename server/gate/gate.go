// Package gate is the one door of all writes: a store that refuses what an identity may not
// write, although it may write objects of the kind. Single writes, patches, server-side
// apply, transactions, rollbacks and dry runs pass through it.
//
// Comes in: a write and, in its context, the identity that sends it. Goes out: the write, or
// an error that answers 403.
//
//	gate.go   the store
//	hosts.go  rules for hosts of other namespaces, and for their Gateways
package gate

import (
	"context"

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
	// Hosts knows who declares hosts, and Domain is the suffix of full service names.
	Hosts  *Hosts
	Domain string
}

// Gate makes stores that refuse. It is safe for concurrent use.
type Gate struct{ opts Options }

// New returns a Gate.
func New(opts Options) *Gate { return &Gate{opts} }

// Store returns a store that writes to another one what may be written. A nil Gate returns
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

// Update implements store.Interface.
func (s gated) Update(ctx context.Context, o *schema.Object) (*schema.Object, error) {
	before := s.gate.stored(ctx, o.Key())
	if repeats(before, o) {
		return s.Interface.UpdateFunc(ctx, o.Key(), s.gate.checked(ctx, always(o), nil))
	}
	if err := s.gate.check(ctx, before, o, nil); err != nil {
		return nil, err
	}
	return s.Interface.Update(ctx, o)
}

// repeats reports whether a write seems to give what the stored object gives already. before is
// as of a moment ago, so such a write is checked again against the object that it replaces:
// somebody may have taken rights away in between.
func repeats(before, after *schema.Object) bool { return before != nil && before.SameSpec(after) }

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
		checked[i] = op
		switch {
		case op.Change != nil:
			checked[i].Change = s.gate.checked(ctx, op.Change, beside)
		case op.Object != nil && op.Verb != store.OpDelete:
			before := s.gate.stored(ctx, op.Object.Key())
			if op.Verb != store.OpCreate && repeats(before, op.Object) {
				checked[i] = store.Op{Verb: store.OpUpdate, Key: op.Object.Key(), Change: s.gate.checked(ctx, always(op.Object), beside)}
				continue
			}
			if err := s.gate.check(ctx, before, op.Object, beside); err != nil {
				return nil, err
			}
		}
	}
	return s.Interface.Txn(ctx, checked)
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

// stored returns an object as it was a moment ago, or nil.
func (g *Gate) stored(ctx context.Context, key schema.Key) *schema.Object {
	o, err := g.opts.Reads.Get(ctx, key, store.ReadOptions{AtLeast: store.Any})
	if err != nil {
		return nil
	}
	return o
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
