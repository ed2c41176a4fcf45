package etcd

import (
	"context"
	"errors"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.etcd.io/raft/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

// translations map errors of etcd to errors of package store. They match both rpctypes
// values and plain gRPC statuses, so no other file depends on etcd's errors.
var translations = []struct {
	etcd   error
	kind   error
	detail string
}{
	{rpctypes.ErrCompacted, store.ErrExpired, "changes from before that revision were compacted: list again"},
	{rpctypes.ErrFutureRev, store.ErrFuture, "the revision is not reached"},
	{rpctypes.ErrRequestTooLarge, store.ErrTooLarge, "the request is larger than etcd takes (--max-request-bytes)"},
	{rpctypes.ErrTooManyOps, store.ErrTooLarge, "more operations in one transaction than etcd takes (--max-txn-ops)"},
	{rpctypes.ErrNoSpace, store.ErrFull, "etcd's space quota is used up: compact, defragment, then disarm its alarm"},
	{rpctypes.ErrCorrupt, store.ErrUnavailable, "the data of etcd's members differ, and it takes no writes: replace the members that are wrong, then disarm its alarm"},
	{rpctypes.ErrTooManyRequests, store.ErrUnavailable, "etcd has too much to do"},
	{rpctypes.ErrPermissionDenied, store.ErrUnavailable, "etcd denies access to the keys of pilot-api: check the role of its user"},
	{rpctypes.ErrAuthFailed, store.ErrUnavailable, "etcd refuses the user name or password"},
}

// unavailable are the codes that mean "not now".
var unavailable = map[codes.Code]bool{
	codes.Unavailable:      true,
	codes.DeadlineExceeded: true,
	codes.Canceled:         true,
	codes.Unauthenticated:  true,
}

// translate converts an error of a client call into an error of package store, which names
// the operation. The original is its cause.
func translate(op string, err error, key schema.Key) error {
	var own *store.Error
	if err == nil || errors.As(err, &own) {
		return err
	}
	if e := refusal(op, err, key); e != nil {
		return e
	}
	switch {
	case errors.Is(err, context.Canceled):
		return err
	case stopped(err):
		return &store.Error{Kind: store.ErrUnavailable, Op: op, Key: key, Detail: "etcd has been stopped", Cause: err}
	case errors.Is(err, context.DeadlineExceeded) || unavailable[code(err)]:
		return &store.Error{Kind: store.ErrUnavailable, Op: op, Key: key, Detail: "etcd does not answer", Cause: err}
	default:
		return &store.Error{Kind: errUnexpected, Op: op, Key: key, Cause: err}
	}
}

// errUnexpected is an internal error. Its text is etcd's or gRPC's and is not shown to
// clients.
var errUnexpected = errors.New("etcd answers in an unexpected way")

// refusal returns the error for a request that etcd refused, and nil for all other
// errors.
func refusal(op string, err error, key schema.Key) error {
	for _, t := range translations {
		if errors.Is(err, t.etcd) {
			return &store.Error{Kind: t.kind, Op: op, Key: key, Detail: t.detail, Cause: err}
		}
	}
	if code(err) == codes.ResourceExhausted {
		// This code comes from gRPC, about message sizes. etcd's own errors are above.
		return &store.Error{Kind: store.ErrTooLarge, Op: op, Key: key, Detail: "the message is larger than etcd takes", Cause: err}
	}
	return nil
}

// unanswered is translate for a request that writes. etcd may have done the write, or
// may still do it, unless it refused.
func unanswered(op string, err error, key schema.Key) error {
	if e := refusal(op, err, key); e != nil {
		return e
	}
	return &store.Error{
		Kind: store.ErrOutcomeUnknown, Op: op, Key: key, Cause: err,
		Detail: "etcd does not answer: the write may or may not be done, read the object to see",
	}
}

// stopped reports whether err is that of an embedded etcd that has ended. That error
// has no code.
func stopped(err error) bool {
	return status.Convert(err).Message() == raft.ErrStopped.Error()
}

// code returns the gRPC code of an error. The client wraps some errors in its own type.
func code(err error) codes.Code {
	var own rpctypes.EtcdError
	if errors.As(err, &own) {
		return own.Code()
	}
	return status.Code(err)
}
