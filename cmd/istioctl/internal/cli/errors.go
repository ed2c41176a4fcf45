package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"syscall"

	"github.com/pilot-api/pilot-api/client"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/contexts"
	"github.com/pilot-api/pilot-api/store"
)

// tlsAlert is the operation by which crypto/tls names an alert of the other side.
const tlsAlert = "remote error"

// Explain turns an error of the client into a sentence that says what to do. It omits
// the object's name, which the caller has just printed.
func (s *Session) Explain(ctx context.Context, err error) string {
	if cause := context.Cause(ctx); cause != nil {
		if errors.Is(cause, context.Canceled) {
			return "interrupted"
		}
		return cause.Error()
	}
	var unreached *url.Error
	var fault *contexts.Fault
	var alert *net.OpError
	switch {
	case errors.As(err, &fault):
		return fault.Error()
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Sprintf("nothing answers at %s: start the server with 'pilot-api', or name another with --server or ISTIOCTL_SERVER", s.Server)
	case errors.Is(err, client.ErrNoPath):
		return fmt.Sprintf("is --server %s right? %v", s.Server, err)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Sprintf("no answer from %s within --request-timeout %s", s.Server, s.RequestTimeout)
	case errors.As(err, &alert) && alert.Op == tlsAlert:
		return fmt.Sprintf("%s refuses the TLS connection: %v", s.Server, alert.Err)
	case errors.Is(err, client.ErrNoAnswer):
		return fmt.Sprintf("no answer came from %s: the connection broke", s.Server)
	case errors.As(err, &unreached) && errors.Is(err, store.ErrUnavailable):
		return fmt.Sprintf("cannot reach %s: %v", s.Server, unreached.Err)
	}
	return Reason(err)
}

// Reason returns the text of an error without the key of its object.
func Reason(err error) string {
	var e *store.Error
	if !errors.As(err, &e) {
		return err.Error()
	}
	short := *e
	short.Key = store.Error{}.Key
	return short.Error()
}

// Fail returns the explained error, for verbs that read.
func (s *Session) Fail(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	return errors.New(s.Explain(ctx, err))
}
