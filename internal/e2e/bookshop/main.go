// Command bookshop runs the backends of examples/bookshop at the addresses in its
// services.yaml, for a first session by hand, until it is interrupted.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/pilot-api/pilot-api/internal/e2e"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	shop, err := e2e.OpenShop(filepath.Join("examples", "bookshop", "services.yaml"))
	if err != nil {
		fmt.Fprintln(os.Stderr, "bookshop:", err)
		os.Exit(1)
	}
	defer shop.Close()
	fmt.Println("the bookshop is open (examples/bookshop/services.yaml); Ctrl-C closes it")
	<-ctx.Done()
}
