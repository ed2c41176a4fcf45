package store

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/schema"
)

// The kinds of failure a caller can tell apart, with errors.Is, on either side
// of the network. Everything else is an internal error.
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
	// ErrOutcomeUnknown: a write was sent on its way and no answer came, so it
	// may or may not have been done. Whoever repeats it may do it twice; look
	// first. All other errors of a write mean that nothing was written.
	ErrOutcomeUnknown = errors.New("outcome unknown")
	ErrFull           = errors.New("store full")
	// ErrUnreadable: there is a value under the key, and it is no object.
	ErrUnreadable = errors.New("cannot be read")
)

// Error is a failed operation: which object, which kind of failure (one of the
// Err… values, found by errors.Is), and a detail for people.
type Error struct {
	Kind error
	Key  schema.Key
	// Index is the place of the failed operation in a transaction, 0
	// otherwise.
	Index int
	// Current is the stored resourceVersion behind a conflict, if known.
	Current string
	// Detail says more than Kind does; may be empty.
	Detail string
	// Problems are the field errors behind ErrInvalid.
	Problems diag.List
	// Cause is for logs, and for errors.Is. It is no part of what Error says,
	// so that no text made of an error gives it away to a client.
	Cause error
}

// Error says what happened, and to which object, to whoever may ask.
func (e *Error) Error() string {
	msg := e.Kind.Error()
	if e.Detail != "" {
		msg = e.Detail
	} else if len(e.Problems) > 0 {
		msg = e.Problems.Error()
	}
	if e.Key != (schema.Key{}) {
		msg = fmt.Sprintf("%s: %s", e.Key, msg)
	}
	return msg
}

// LogValue is what Error says and the cause of it.
func (e *Error) LogValue() slog.Value { return Logged(e) }

// Logged is any error as a log may know it, with the cause behind it.
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

// NotReached is ErrFuture for a revision beyond the newest.
func NotReached(revision, newest int64) *Error {
	return &Error{Kind: ErrFuture, Detail: fmt.Sprintf("revision %d is not reached, the newest is %d", revision, newest)}
}

// AtIndex says which operation of a transaction an error belongs to.
func AtIndex(err error, index int) error {
	var e *Error
	if !errors.As(err, &e) {
		return err
	}
	at := *e
	at.Index = index
	return &at
}
