// Package login has the verb login. It takes an issuer and a context. It writes tokens to a
// file beside the config file, and changes the context to use them.
package login
