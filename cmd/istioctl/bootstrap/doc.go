// Package bootstrap has the verb bootstrap. It takes a node ID and flags, and prints the
// configuration with which an Envoy or a gRPC program starts. The package asks a server on
// this machine for its sockets, and connects to one to find out whether this user may use
// it.
package bootstrap
