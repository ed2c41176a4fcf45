// Package cli has what all verbs share. A Program has the streams and the environment
// of one command line. A Session has, beside it, the global flags, and connects to the
// server that they name. The package also turns errors into sentences and exit codes,
// lists objects in pages, and reports that a connection is lost and back.
//
// In come flags, the environment and the config file; out come a client of the server,
// and lines on the streams. Nothing but a Program writes to stdout and stderr. The
// package knows no verb and no output format.
package cli
