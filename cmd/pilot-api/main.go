// Command pilot-api is the mesh control plane. It keeps config objects in etcd,
// validates them, streams their changes, and answers Envoy's discovery requests. This
// package contains only flags, wiring and exit codes.
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
