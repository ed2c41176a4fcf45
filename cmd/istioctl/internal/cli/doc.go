// Package cli has the code that all verbs share. A Program has the streams and the
// environment of one command line. A Session adds the global flags, and connects to the
// server that they name. The package also turns errors into sentences and exit codes, lists
// objects in pages, and reports that a connection is lost and back.
//
// It reads flags, the environment and the config file. It returns a client of the server,
// and writes lines to the streams. Only a Program writes to stdout and stderr. The package
// knows no verb and no output format.
package cli
