// Package oidclogin gets tokens of an OpenID Connect issuer for a person, and keeps them. In
// come an issuer and a place for a file; out come tokens for requests. The file has the
// refresh token, and only its owner may read it.
package oidclogin
