// Package token has the verbs token, which asks for tokens of service accounts, and whoami,
// which shows who the server takes the caller for. In comes a name; out come the token or the
// user. The package keeps no token.
package token
