// Package offline makes a mesh from files, for verbs that need no server. Callers give it
// the flags -f, --mesh-config and --domain. It returns the snapshot that a server with only
// these objects would have. The package reads files, including those of the secrets that
// the settings name.
package offline
