package store

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/pilot-api/pilot-api/schema"
)

// Strict returns a store that checks every call before it passes it on. If schema.Validate
// refuses an object, or a call breaks the contract, the call fails with ErrInvalid and all
// problems found. So drivers need no such checks.
func Strict(behind Interface) Interface { return &strict{behind} }

type strict struct{ Interface }

// HistoryAtHand implements HistorianAtHand.
func (s *strict) HistoryAtHand(ctx context.Context, key schema.Key) ([]Version, error) {
	return HistoryAtHand(ctx, s.Interface, key)
}

func (s *strict) Create(ctx context.Context, obj *schema.Object) (*schema.Object, error) {
	if err := checkOp(Op{Verb: OpCreate, Object: obj}); err != nil {
		return nil, err
	}
	return s.Interface.Create(ctx, obj)
}

func (s *strict) Update(ctx context.Context, obj *schema.Object) (*schema.Object, error) {
	if err := s.checkWhole(ctx, Op{Verb: OpUpdate, Object: obj}); err != nil {
		return nil, err
	}
	return s.Interface.Update(ctx, obj)
}

func (s *strict) Delete(ctx context.Context, key schema.Key, pre Preconditions) (*schema.Object, error) {
	if err := checkOp(Op{Verb: OpDelete, Key: key, Pre: pre}); err != nil {
		return nil, err
	}
	return s.Interface.Delete(ctx, key, pre)
}

func (s *strict) UpdateFunc(ctx context.Context, key schema.Key, change Change) (*schema.Object, error) {
	if err := checkOp(Op{Verb: OpUpdate, Key: key, Change: change}); err != nil {
		return nil, err
	}
	return s.Interface.UpdateFunc(ctx, key, checked(change))
}

func (s *strict) Txn(ctx context.Context, ops []Op) ([]*schema.Object, error) {
	if err := CheckOps(ops); err != nil {
		return nil, err
	}
	ops = slices.Clone(ops)
	for i, op := range ops {
		if err := s.checkWhole(ctx, op); err != nil {
			return nil, AtIndex(err, i)
		}
		if op.Change != nil {
			ops[i].Change = checked(op.Change)
		}
	}
	return s.Interface.Txn(ctx, ops)
}

// checkWhole is checkOp for an operation that may replace a stored object. Problems
// that the stored object already has do not refuse its replacement.
func (s *strict) checkWhole(ctx context.Context, op Op) error {
	err := checkOp(op)
	var e *Error
	if op.Object == nil || op.Verb != OpUpdate && op.Verb != OpApply || !errors.As(err, &e) || len(e.Problems) == 0 {
		return err
	}
	stored, missing := s.Interface.Get(ctx, op.Target(), ReadOptions{})
	if missing != nil {
		return err
	}
	return checkNext(op, stored)
}

// checkNext is checkOp for an object that replaces a stored one.
func checkNext(op Op, stored *schema.Object) error {
	err := checkOp(op)
	var e *Error
	if stored != nil && errors.As(err, &e) && len(misuse(op)) == 0 && len(e.Problems) > 0 && schema.Unchanged(e.Problems, schema.Violations(stored)) {
		return nil
	}
	return err
}

// checked returns a change whose result passes the same checks.
func checked(change Change) Change {
	return func(stored *schema.Object) (*schema.Object, error) {
		next, err := change(stored)
		if err != nil {
			return nil, err
		}
		verb := OpUpdate
		if stored == nil && next.Meta.ResourceVersion == "" {
			verb = OpCreate
		}
		return next, checkNext(Op{Verb: verb, Object: next}, stored)
	}
}

func (s *strict) Get(ctx context.Context, key schema.Key, opts ReadOptions) (*schema.Object, error) {
	if err := checkKey(key); err != nil {
		return nil, err
	}
	return s.Interface.Get(ctx, key, opts)
}

func (s *strict) List(ctx context.Context, scope Scope, opts ListOptions) (*List, error) {
	if err := checkScope(scope); err != nil {
		return nil, err
	}
	if opts.Exact < 0 || opts.Exact != 0 && opts.AtLeast != 0 {
		return nil, &Error{Kind: ErrInvalid, Detail: fmt.Sprintf(
			"a list wants either an exact revision or a least one, found exact %d and at least %d", opts.Exact, opts.AtLeast)}
	}
	if err := checkPage(opts); err != nil {
		return nil, err
	}
	return s.Interface.List(ctx, scope, opts)
}

func (s *strict) Watch(ctx context.Context, scope Scope, after int64) (Watcher, error) {
	if err := checkScope(scope); err != nil {
		return nil, err
	}
	if after < 0 {
		return nil, &Error{Kind: ErrInvalid, Detail: fmt.Sprintf("a watch starts after revision 0 or more, found %d", after)}
	}
	return s.Interface.Watch(ctx, scope, after)
}

func checkPage(opts ListOptions) error {
	switch {
	case opts.Limit < 0:
		return &Error{Kind: ErrInvalid, Detail: fmt.Sprintf("a list has a limit of 0 or more, found %d", opts.Limit)}
	case opts.After == (schema.Key{}):
		return nil
	case opts.AtLeast != 0:
		return &Error{Kind: ErrInvalid, Detail: "a list after a key is at an exact revision or the newest"}
	}
	if err := checkAfter(opts.After); err != nil {
		return &Error{Kind: ErrInvalid, Key: opts.After, Detail: "the key to list after " + err.Error()}
	}
	return nil
}

func checkScope(s Scope) error {
	if s.Name != "" && (s.Kind == nil || s.Namespace == "") {
		return &Error{Kind: ErrInvalid, Detail: fmt.Sprintf(
			"a scope with a name (%q) needs a kind and a namespace too", s.Name)}
	}
	return nil
}

func checkOp(op Op) error {
	problems := misuse(op)
	if op.Object != nil {
		problems = append(problems, schema.Validate(op.Object).Errors()...)
	}
	if len(problems) > 0 {
		return &Error{Kind: ErrInvalid, Key: op.Target(), Problems: problems}
	}
	switch {
	case op.Object == nil:
		return checkKey(op.Key)
	case op.Verb == OpCreate && op.Object.Size() > schema.MaxNewBytes:
		return &Error{Kind: ErrTooLarge, Key: op.Target(), Detail: fmt.Sprintf(
			"the object is %d bytes long as JSON; a new one may have %d", op.Object.Size(), schema.MaxNewBytes)}
	}
	return nil
}

func checkKey(key schema.Key) error {
	if _, ok := schema.KindByName(key.Kind); !ok || key.Namespace == "" || key.Name == "" {
		return &Error{Kind: ErrInvalid, Key: key, Detail: "a key needs a known kind, a namespace and a name"}
	}
	return nil
}
