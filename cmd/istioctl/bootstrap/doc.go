// Package bootstrap has the verb bootstrap. In come a node ID and flags; out comes the
// configuration with which an Envoy or a gRPC program starts. The package asks a server
// on this machine for its sockets, and connects to one to see whether this user may.
package bootstrap
