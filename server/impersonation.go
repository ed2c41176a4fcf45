package server

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	authentication "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/api/validation"

	"github.com/pilot-api/pilot-api/security/authz"
	"github.com/pilot-api/pilot-api/security/identity"
	"github.com/pilot-api/pilot-api/server/wire"
)

// impersonated returns the identity that a request is to be done as. It takes the verb
// impersonate on the user, on each group, on the uid and on each value of a further fact;
// without it the request is refused, and never done as its sender.
func (s *Server) impersonated(r *http.Request, who identity.Identity) (identity.Identity, error) {
	users, groups, uids := r.Header.Values(authentication.ImpersonateUserHeader), r.Header.Values(authentication.ImpersonateGroupHeader), r.Header.Values(authentication.ImpersonateUIDHeader)
	extra := impersonatedExtra(r.Header)
	switch {
	case len(users)+len(groups)+len(uids)+len(extra) == 0:
		return who, nil
	case len(users) != 1 || users[0] == "":
		return who, wire.BadRequest("%s: must be given once, also with the other headers Impersonate-…", authentication.ImpersonateUserHeader)
	case len(uids) > 1 || len(uids) == 1 && uids[0] == "":
		return who, wire.BadRequest("%s: must be given once, with a uid", authentication.ImpersonateUIDHeader)
	}
	as := identity.Identity{Name: users[0], Groups: slices.Clone(groups), Extra: extra, By: who.By, Via: &who}
	if len(uids) == 1 {
		as.UID = uids[0]
	}
	if namespace, _, is := accountIn(as.Name); is && len(groups) == 0 {
		as.Groups = authz.AccountGroups(namespace)
	}
	for _, one := range impersonationRights(as, groups) {
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

// impersonatedExtra returns the further facts of headers, nil if there are none. As in
// Kubernetes, a header has the name of a fact in any case, and escaped like a part of a URL.
func impersonatedExtra(headers http.Header) map[string][]string {
	var extra map[string][]string
	for header, values := range headers {
		name, is := strings.CutPrefix(header, authentication.ImpersonateUserExtraHeaderPrefix)
		if !is {
			continue
		}
		name = strings.ToLower(name)
		if unescaped, err := url.PathUnescape(name); err == nil {
			name = unescaped
		}
		if extra == nil {
			extra = map[string][]string{}
		}
		extra[name] = append(extra[name], values...)
	}
	return extra
}

// impersonationRights returns the rights that it takes to act as an identity with groups.
func impersonationRights(as identity.Identity, groups []string) []authz.Attributes {
	rights := []authz.Attributes{impersonation("", "users", as.Name)}
	if namespace, name, is := accountIn(as.Name); is {
		rights[0] = impersonation("", "serviceaccounts", name)
		rights[0].Namespace = namespace
	}
	for _, group := range groups {
		rights = append(rights, impersonation("", "groups", group))
	}
	if as.UID != "" {
		rights = append(rights, impersonation(authentication.GroupName, "uids", as.UID))
	}
	for name, values := range as.Extra {
		for _, value := range values {
			one := impersonation(authentication.GroupName, "userextras", value)
			one.Subresource = name
			rights = append(rights, one)
		}
	}
	return rights
}

func impersonation(group, resource, name string) authz.Attributes {
	return authz.Attributes{Verb: "impersonate", Group: group, Resource: resource, Name: name}
}

// accountIn returns the ServiceAccount that a user name means. A name that no ServiceAccount
// can have is that of a user.
func accountIn(user string) (namespace, name string, is bool) {
	rest, is := strings.CutPrefix(user, "system:serviceaccount:")
	namespace, name, found := strings.Cut(rest, ":")
	is = is && found && len(validation.ValidateNamespaceName(namespace, false)) == 0 && len(validation.ValidateServiceAccountName(name, false)) == 0
	return namespace, name, is
}
