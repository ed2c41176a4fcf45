// Command pilot-api is the mesh control plane. It keeps config objects in etcd,
// validates them, streams their changes, and answers Envoy's discovery requests. This
// package contains only flags, wiring and exit codes.
//
// Flags:
//
//	command.go    the commands, environment variables, exit codes
//	options.go    flags of the server
//	limits.go     limits of memory, connections and users
//	access.go     authentication and authorization
//	authority.go  the certificate authority of the mesh
//
// The start, in this order (run.go):
//
//	base.go           what all steps share; certificate files (secretfiles.go), keys of issuers (issuerkeys.go)
//	listeners.go      listeners with their TLS (tls.go), sockets (sockets.go)
//	storage.go        the etcd (backend.go), the cache, other replicas (peers.go)
//	accesscontrol.go  users and proxies; the roles (roles.go)
//	publisher.go      compiles; secrets in files and roots (meshinputs.go); settings of
//	                  earlier starts (pastsettings.go);
//	                  proxies of all replicas (inventory.go)
//	fronts.go         the HTTP API and the streams
//	statuses.go       statuses as revisions of the store
//
// Beside them:
//
//	ready.go        the checks of /readyz
//	adminsocket.go  a socket for commands on this machine
//	leftout.go      problems of stored values that cannot be read
//	garbage.go      limits of garbage
//	storemetrics.go, certificatemetrics.go
//	                metrics
//
// Commands beside the server: snapshot.go, defragment.go and migrate.go, with their output
// in console.go.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// The first signal ends the program gracefully, the second one at once.
	context.AfterFunc(ctx, stop)
	os.Exit(Main(ctx, os.Args[1:], os.Stdout, os.Stderr))
}
