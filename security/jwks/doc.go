// Package jwks fetches the public keys of issuers of JSON Web Tokens, for proxies that verify
// tokens by them (docs/decisions/044-tokens-of-requests.md).
//
//	fetcher.go  which keys are wanted, when they are fetched, and the last good ones
//	fetch.go    one fetch, within limits of time and size, from addresses that are allowed
//
// The authors of objects choose the URLs. So the fetcher connects to no address of its own
// machine unless the operator allows that, follows no redirects, and tells nobody what an endpoint
// answered.
package jwks
