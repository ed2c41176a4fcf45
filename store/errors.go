package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/schema"
)

// The kinds of failure. A caller can tell them apart with errors.Is, on both sides of the
// network. Every other error is an internal error.
var (
	ErrNotFound    = errors.New("not found")
	ErrExists      = errors.New("already exists")
	ErrConflict    = errors.New("conflict")
	ErrInvalid     = errors.New("invalid")
	ErrExpired     = errors.New("revision expired")
	ErrFuture      = errors.New("revision not reached")
	ErrSlow        = errors.New("watcher too slow")
	ErrUnavailable = errors.New("store unavailable")
	ErrTooLarge    = errors.New("too large")
	// ErrOutcomeUnknown means that a write was sent and no answer came. The store may or
	// may not have done it. A repeated write may be done twice, so read the state first.
	// All other errors of a write mean that nothing was written.
	ErrOutcomeUnknown = errors.New("outcome unknown")
	ErrFull           = errors.New("store full")
	// ErrUnreadable means that the value stored under the key is not a valid object.
	ErrUnreadable = errors.New("cannot be read")
)

// Error is a failed operation: the object, the kind of failure (one of the Err… values,
// found by errors.Is), and a detail for people.
type Error struct {
	Kind error
	// Op is the operation, such as "list". It is empty if the kind and the detail are
	// enough.
	Op  string
	Key schema.Key
	// Index is the position of the failed operation in a transaction, otherwise 0.
	Index int
	// Current is the stored resourceVersion behind a conflict, if known.
	Current string
	// Detail adds to Kind. It may be empty.
	Detail string
	// Problems are the field errors behind ErrInvalid.
	Problems diag.List
	// Cause is for logs and errors.Is. Error does not include it, so no text made from
	// an error reveals it to a client.
	Cause error
}

// Error returns what happened and to which object. The text is safe for clients.
func (e *Error) Error() string {
	msg := e.Kind.Error()
	if e.Detail != "" {
		msg = e.Detail
	} else if len(e.Problems) > 0 {
		msg = e.Problems.Error()
	}
	if e.Key != (schema.Key{}) {
		msg = fmt.Sprintf("%s: %s", e.Key, msg)
		if e.Op != "" {
			return e.Op + " " + msg
		}
		return msg
	}
	if e.Op != "" {
		return e.Op + ": " + msg
	}
	return msg
}

// LogValue returns the text of Error followed by its causes.
func (e *Error) LogValue() slog.Value { return Logged(e) }

// Logged returns the text of any error for a log, followed by its causes.
func Logged(err error) slog.Value {
	text := err.Error()
	for e := (*Error)(nil); errors.As(err, &e) && e.Cause != nil; err = e.Cause {
		text += ": " + e.Cause.Error()
	}
	return slog.StringValue(text)
}

func (e *Error) Unwrap() []error {
	if e.Cause == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.Cause}
}

// NotReached returns ErrFuture for a revision beyond the newest.
func NotReached(revision, newest int64) *Error {
	return &Error{Kind: ErrFuture, Detail: fmt.Sprintf("revision %d is not reached, the newest is %d", revision, newest)}
}

// AtIndex returns err with the index of the operation that failed in a transaction.
func AtIndex(err error, index int) error {
	var e *Error
	if !errors.As(err, &e) {
		return err
	}
	at := *e
	at.Index = index
	return &at
}

// Overdue returns nil while ctx lasts, and an error once it has ended. Call it before a
// part of a write, when nothing has been written yet.
func Overdue(ctx context.Context) error {
	err := ctx.Err()
	if errors.Is(err, context.DeadlineExceeded) {
		return &Error{Kind: context.DeadlineExceeded, Detail: "the request took too long; nothing was written"}
	}
	return err
}
