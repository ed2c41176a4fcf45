package store

import (
	"fmt"
	"strconv"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/schema"
)

// CheckOps returns ErrInvalid for a transaction that breaks the contract, regardless of
// what is stored. Every driver calls it first.
func CheckOps(ops []Op) error {
	if len(ops) > MaxTxnOps {
		return &Error{Kind: ErrInvalid, Detail: fmt.Sprintf(
			"a transaction of %d operations, at most %d are allowed", len(ops), MaxTxnOps)}
	}
	seen := make(map[schema.Key]int, len(ops))
	for i, op := range ops {
		if problems := misuse(op); len(problems) > 0 {
			return &Error{Kind: ErrInvalid, Key: op.Target(), Index: i, Problems: problems}
		}
		if first, ok := seen[op.Target()]; ok {
			return &Error{Kind: ErrInvalid, Key: op.Target(), Index: i, Detail: fmt.Sprintf(
				"operations %d and %d of one transaction are on the same object", first, i)}
		}
		seen[op.Target()] = i
	}
	return nil
}

// CheckLimit returns ErrTooLarge if there are more operations than a server accepts.
func CheckLimit(ops []Op, most int) error {
	if len(ops) <= most {
		return nil
	}
	return &Error{Kind: ErrTooLarge, Detail: fmt.Sprintf(
		"a transaction of %d operations, this server takes %d (--max-transaction)", len(ops), most)}
}

// misuse returns what the contract forbids in an operation, for any kind of object.
func misuse(op Op) diag.List {
	byKey, canChange := op.Verb == OpDelete || op.Change != nil, op.Verb == OpUpdate || op.Verb == OpApply
	if byKey != (op.Object == nil) || op.Change != nil && !canChange {
		return diag.List{complaint(op, diag.FieldInvalid, "", "", "create, update and apply want an object, delete a key alone, an update or apply by function a key and the function")}
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
