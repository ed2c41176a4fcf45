// Package authn verifies the sender of a request to the API.
//
// It receives a request with a client certificate, a bearer token or neither. It returns an
// identity.Identity, or a Failure that says which proofs are accepted. The package knows no
// objects and no rights.
//
//	authn.go         the order of the proofs, and failures
//	certificates.go  client certificates, and lists of revoked ones
//	tokens.go        the cache of verified tokens
//	penalties.go     limit of wrong tokens from one address
//	tokenfile.go     a file with tokens
//	accounttokens.go tokens of service accounts, which the server issues
//	accounts.go      the service accounts that exist
//	revokedtokens.go tokens of service accounts that end before their time
//	oidc.go          tokens of OpenID Connect issuers
//	oidcclient.go    requests to these issuers, within limits
//	replicakey.go    tokens of the other replicas
//	followed.go      files that are read again when they change
//	metrics.go       counts of proofs
package authn
