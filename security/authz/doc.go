// Package authz decides what identities may do.
//
// Callers give it an identity and the access that it asks for. It returns a Decision with
// its reason. Package server asks before each request. For a request with several
// operations, it also asks before each operation.
//
//	authz.go       the requested access and the Decision; the decision without roles
//	guard.go       the decision about a request
//	names.go       problems without the names of objects that may not be read
//	roles.go       the decision by roles and bindings, with the meaning of Kubernetes
//	rolerules.go   the rules of one role, and whether one allows something
//	builtin.go     the roles that every server has
//	escalation.go  writes of roles and bindings: nobody gives rights that they do not have
package authz
