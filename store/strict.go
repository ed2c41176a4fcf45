package store

import (
	"context"
	"fmt"
	"strconv"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/schema"
)

// Strict puts a door before a store: an object that schema.Validate refuses,
// and a call that breaks the contract, end there with ErrInvalid and all
// problems found. Drivers behind it stay plain.
func Strict(behind Interface) Interface { return &strict{behind} }

type strict struct{ Interface }

func (s *strict) Create(ctx context.Context, obj *schema.Object) (*schema.Object, error) {
	if err := checkOp(Op{Verb: OpCreate, Object: obj}); err != nil {
		return nil, err
	}
	return s.Interface.Create(ctx, obj)
}

func (s *strict) Update(ctx context.Context, obj *schema.Object) (*schema.Object, error) {
	if err := checkOp(Op{Verb: OpUpdate, Object: obj}); err != nil {
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

func (s *strict) Txn(ctx context.Context, ops []Op) ([]*schema.Object, error) {
	if len(ops) > MaxTxnOps {
		return nil, &Error{Kind: ErrInvalid, Detail: fmt.Sprintf(
			"a transaction of %d operations, at most %d are allowed", len(ops), MaxTxnOps)}
	}
	seen := make(map[schema.Key]int, len(ops))
	for i, op := range ops {
		if err := checkOp(op); err != nil {
			return nil, AtIndex(err, i)
		}
		if first, ok := seen[op.Target()]; ok {
			return nil, &Error{Kind: ErrInvalid, Key: op.Target(), Index: i, Detail: fmt.Sprintf(
				"operations %d and %d of one transaction are on the same object", first, i)}
		}
		seen[op.Target()] = i
	}
	return s.Interface.Txn(ctx, ops)
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
	if op.Object == nil {
		return checkKey(op.Key)
	}
	return nil
}

func checkKey(key schema.Key) error {
	if _, ok := schema.KindByName(key.Kind); !ok || key.Namespace == "" || key.Name == "" {
		return &Error{Kind: ErrInvalid, Key: key, Detail: "a key needs a known kind, a namespace and a name"}
	}
	return nil
}

// misuse finds what the contract forbids, whatever the kind of the object.
func misuse(op Op) diag.List {
	if (op.Verb == OpDelete) != (op.Object == nil) {
		return diag.List{complaint(op, diag.FieldInvalid, "", "", "create and update want an object, delete a key alone")}
	}
	given, field := op.Pre.ResourceVersion, "preconditions.resourceVersion"
	if op.Object != nil {
		given, field = op.Object.Meta.ResourceVersion, "metadata.resourceVersion"
	}
	switch {
	case given == "":
		return nil
	case op.Verb == OpCreate:
		return diag.List{complaint(op, diag.FieldForbidden, field, given, "must be empty for an object that is created")}
	}
	if n, err := strconv.ParseInt(given, 10, 64); err != nil || n <= 0 {
		return diag.List{complaint(op, diag.FieldInvalid, field, given, "must be a resourceVersion as the store gave it, a positive decimal number")}
	}
	return nil
}

func complaint(op Op, reason diag.Reason, field, value, message string) diag.Problem {
	if value != "" {
		value = strconv.Quote(value)
	}
	return diag.Problem{
		Severity: diag.Error, Reason: reason, Object: op.Target().Ref(),
		Field: field, Value: value, Message: message,
	}
}
