package server

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pilot-api/pilot-api/security/audit"
	"github.com/pilot-api/pilot-api/security/authn"
	"github.com/pilot-api/pilot-api/security/identity"
	"github.com/pilot-api/pilot-api/server/wire"
)

// authenticate puts the identity that a request is done as into its context, and refuses
// requests that do not prove one.
func (s *Server) authenticate(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		known := s.opts.AccessKnown()
		if !known && r.Header.Get("Authorization") != "" {
			s.fail(w, r, errAccessUnknown) // A token of an account would prove nothing, and count as wrong.
			return
		}
		who, err := s.sender(r)
		if !known && !who.In(identity.Masters) {
			s.fail(w, r, errAccessUnknown)
			return
		}
		if err != nil {
			s.failProof(w, r, err)
			return
		}
		e := audit.Of(r.Context())
		if e != nil {
			e.SetIdentity(who) // Also for a request that must not be done as somebody else.
		}
		as, err := s.impersonated(r, who)
		if err != nil {
			s.fail(w, r, err)
			return
		}
		if e != nil {
			e.SetIdentity(as)
		}
		next.ServeHTTP(w, r.WithContext(identity.NewContext(r.Context(), as)))
	})
}

// errAccessUnknown answers requests while roles and accounts are being read.
var errAccessUnknown = apierrors.NewGenericServerResponse(http.StatusServiceUnavailable, "", runtimeschema.GroupResource{}, "",
	"the server has not read the roles and accounts yet; try again", 1, true)

// sender returns who sends a request. A server without an Authenticator takes everybody for a
// person on this machine.
func (s *Server) sender(r *http.Request) (identity.Identity, error) {
	if s.opts.Authn == nil {
		return identity.Nobody(identity.Masters), nil
	}
	return s.opts.Authn.Authenticate(r)
}

// failProof answers a request that proves nobody.
func (s *Server) failProof(w http.ResponseWriter, r *http.Request, err error) {
	var failure *authn.Failure
	if errors.As(err, &failure) && failure.RetryAfter > 0 {
		status := wire.Failure(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, "%s", failure.Reason)
		if failure.Undecided {
			status = wire.Failure(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, "%s", failure.Reason)
		}
		w.Header().Set("Retry-After", strconv.Itoa(wholeSeconds(failure.RetryAfter)))
		s.fail(w, r, status)
		return
	}
	if failure != nil {
		w.Header().Set("WWW-Authenticate", failure.Challenge())
	}
	s.fail(w, r, wire.Failure(http.StatusUnauthorized, metav1.StatusReasonUnauthorized, "%v", err))
}

// wholeSeconds returns a time in seconds, rounded up.
func wholeSeconds(wait time.Duration) int {
	return int((wait + time.Second - 1) / time.Second)
}
