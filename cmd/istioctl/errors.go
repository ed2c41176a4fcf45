package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"syscall"

	"github.com/pilot-api/pilot-api/client"
	"github.com/pilot-api/pilot-api/store"
)

// explain turns an error of the client into a sentence that says what to do. It omits
// the object's name, which the caller has just printed.
func (s *session) explain(ctx context.Context, err error) string {
	if cause := context.Cause(ctx); cause != nil {
		if errors.Is(cause, context.Canceled) {
			return "interrupted"
		}
		return cause.Error()
	}
	var unreached *url.Error
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Sprintf("nothing answers at %s: start the server with 'pilot-api', or name another with --server or ISTIOCTL_SERVER", s.server)
	case errors.Is(err, client.ErrNoPath):
		return fmt.Sprintf("is --server %s right? %v", s.server, err)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Sprintf("no answer from %s within --request-timeout %s", s.server, s.requestTimeout)
	case errors.Is(err, client.ErrNoAnswer):
		return fmt.Sprintf("no answer came from %s: the connection broke", s.server)
	case errors.As(err, &unreached) && errors.Is(err, store.ErrUnavailable):
		return fmt.Sprintf("cannot reach %s: %v", s.server, unreached.Err)
	}
	return reason(err)
}

// reason returns the text of an error without the key of its object.
func reason(err error) string {
	var e *store.Error
	if !errors.As(err, &e) {
		return err.Error()
	}
	short := *e
	short.Key = store.Error{}.Key
	return short.Error()
}

// fail returns the explained error, for verbs that read.
func (s *session) fail(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	return errors.New(s.explain(ctx, err))
}
