// Program pilot-agent is what runs beside each workload of the mesh, on its machine. Its
// command capture decides which connections of the machine go through the proxy.
//
//	command.go   the commands, exit codes
//	variables.go environment variables
//	capture.go   the command capture and those below it
//	completion.go
//	             completion of a shell
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(Main(ctx, os.Args[1:], os.Stdout, os.Stderr))
}
