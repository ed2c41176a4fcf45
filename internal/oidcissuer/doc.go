// Package oidcissuer is an OpenID Connect issuer for tests. Its one person logs in at once,
// by a browser or by another device, and tests change its keys and the life of its tokens.
package oidcissuer
