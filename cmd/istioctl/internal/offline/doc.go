// Package offline makes a mesh of files, for verbs that ask no server. In come the
// flags -f, --mesh-config and --domain; out comes a snapshot as a server of these
// objects alone would have it. The package reads files, also those of the secrets that
// the settings name.
package offline
