// Package identity has the identity of the sender of a request: a name, groups, and the
// proof. The server puts it into the context of the request. Package authn proves
// identities, package authz decides what they may do.
package identity

import (
	"context"
	"slices"
)

// The names that Kubernetes reserves for itself begin with Reserved. Only the server gives
// them to identities, and certificates and token files that its operator makes.
const Reserved = "system:"

const (
	// Anonymous is the name of requests without a proof.
	Anonymous = "system:anonymous"
	// Unauthenticated is the group of these requests.
	Unauthenticated = "system:unauthenticated"
	// Authenticated is a group of all others.
	Authenticated = "system:authenticated"
	// Masters is the group that may do everything.
	Masters = "system:masters"
	// Accounts is the group of all ServiceAccounts.
	Accounts = "system:serviceaccounts"
	// Replicas is the group of the other replicas of the server.
	Replicas = "system:replicas"
)

// CredentialID is the name in Extra of the ID of the token that proved an identity.
const CredentialID = "authentication.kubernetes.io/credential-id"

// Method is how an identity was proved.
type Method string

// The methods.
const (
	ByNothing     Method = "none"
	ByCertificate Method = "certificate"
	ByTokenFile   Method = "token-file"
	ByOIDC        Method = "oidc"
	ByAccount     Method = "service-account"
	ByReplicaKey  Method = "replica"
)

// Identity says who sends a request. It does not change, and may be shared.
type Identity struct {
	Name   string
	UID    string // "" for none
	Groups []string
	// Extra are further facts, by names such as example.com/department.
	Extra map[string][]string
	By    Method
	// Via is the identity that acts as this one; nil if it acts for itself.
	Via *Identity
}

// In reports whether the identity is in a group.
func (i Identity) In(group string) bool { return slices.Contains(i.Groups, group) }

// IsProved reports whether the identity has shown a proof.
func (i Identity) IsProved() bool { return i.By != "" && i.By != ByNothing }

// Nobody returns the identity of requests without a proof, in further groups.
func Nobody(groups ...string) Identity {
	return Identity{Name: Anonymous, Groups: append([]string{Unauthenticated}, groups...), By: ByNothing}
}

type contextKey struct{}

// NewContext returns a context of a request by an identity.
func NewContext(ctx context.Context, i Identity) context.Context {
	return context.WithValue(ctx, contextKey{}, &i)
}

// Of returns the identity of a context, and Nobody if it has none.
func Of(ctx context.Context) Identity {
	if i, ok := ctx.Value(contextKey{}).(*Identity); ok {
		return *i
	}
	return Nobody()
}
