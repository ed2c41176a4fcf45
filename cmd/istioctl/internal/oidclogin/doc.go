// Package oidclogin gets tokens of an OpenID Connect issuer for a person, and keeps them.
// Callers give it an issuer and the name of a file. It returns tokens for requests. The
// file has the refresh token, and only its owner may read it.
package oidclogin
