package server

import (
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pilot-api/pilot-api/security/audit"
	"github.com/pilot-api/pilot-api/security/authn"
	"github.com/pilot-api/pilot-api/security/authz"
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

// The headers of Kubernetes by which a client acts as somebody else.
const (
	impersonateUser  = "Impersonate-User"
	impersonateGroup = "Impersonate-Group"
	impersonateUID   = "Impersonate-Uid"
	impersonateExtra = "Impersonate-Extra-"
)

// impersonated returns the identity that a request is to be done as. It takes the verb
// impersonate on the user and on each group; without it the request is refused, and never
// done as its sender.
func (s *Server) impersonated(r *http.Request, who identity.Identity) (identity.Identity, error) {
	users, groups, rest := r.Header.Values(impersonateUser), r.Header.Values(impersonateGroup), r.Header.Values(impersonateUID)
	for name := range r.Header {
		if strings.HasPrefix(name, impersonateExtra) {
			rest = append(rest, name)
		}
	}
	switch {
	case len(users)+len(groups)+len(rest) == 0:
		return who, nil
	case len(rest) > 0:
		return who, forbidden("%s and %s… are not supported: leave them out", impersonateUID, impersonateExtra)
	case len(users) != 1 || users[0] == "":
		return who, wire.BadRequest("%s: must be given once, also with %s", impersonateUser, impersonateGroup)
	}
	as := identity.Identity{Name: users[0], Groups: slices.Clone(groups), By: who.By, Via: &who}
	asked := []authz.Attributes{impersonation("users", as.Name)}
	if namespace, name, is := accountIn(as.Name); is {
		asked[0] = authz.Attributes{Verb: "impersonate", Resource: "serviceaccounts", Namespace: namespace, Name: name}
		if len(groups) == 0 {
			as.Groups = authz.AccountGroups(namespace)
		}
	}
	for _, group := range groups {
		asked = append(asked, impersonation("groups", group))
	}
	for _, one := range asked {
		if d := s.guard.Authorize(r.Context(), who, one); !d.Allowed {
			return who, authz.Forbidden(who, one, d.Reason)
		}
	}
	switch {
	case as.Name == identity.Anonymous && !as.In(identity.Unauthenticated):
		as.Groups = append(as.Groups, identity.Unauthenticated)
	case as.Name != identity.Anonymous && !as.In(identity.Unauthenticated) && !as.In(identity.Authenticated):
		as.Groups = append(as.Groups, identity.Authenticated)
	}
	return as, nil
}

func impersonation(resource, name string) authz.Attributes {
	return authz.Attributes{Verb: "impersonate", Resource: resource, Name: name}
}

// accountIn returns the ServiceAccount that a user name means. A name that no ServiceAccount
// can have is that of a user.
func accountIn(user string) (namespace, name string, is bool) {
	rest, is := strings.CutPrefix(user, "system:serviceaccount:")
	namespace, name, found := strings.Cut(rest, ":")
	is = is && found && len(validation.ValidateNamespaceName(namespace, false)) == 0 && len(validation.ValidateServiceAccountName(name, false)) == 0
	return namespace, name, is
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
