// Package login has the verb login. In come an issuer and a context; out come tokens in a file
// beside the config file, and the context that uses them.
package login
