// Package token has the verbs token, which asks for tokens of service accounts, and whoami,
// which shows the user as which the server identifies the caller. The package keeps no
// token.
package token
