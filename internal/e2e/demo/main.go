// Command demo routes requests through a real Envoy by each rule of examples/bookshop and
// prints one table of what should happen and what did. It runs from the folder of the
// repository, after make build and make tools (make demo does all that), and exits with 1
// if a line does not hold.
package main

import (
	"context"
	"errors"
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
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	programs := e2e.Programs{
		PilotAPI: filepath.Join("bin", "pilot-api"),
		Istioctl: filepath.Join("bin", "istioctl"),
		Envoy:    filepath.Join(".tools", "envoy"),
	}
	if err := programs.Missing(); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "bookshop-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	fmt.Println("starting pilot-api, six backends and the sidecar of productpage")
	w, err := e2e.OpenWorld(ctx, programs, e2e.Bookshop(filepath.Join("examples", "bookshop")), dir)
	if err != nil {
		return err
	}
	if err := errors.Join(play(ctx, w), w.Close()); err != nil {
		return err
	}
	fmt.Printf("all %d lines hold; everything was stopped and removed\n", len(e2e.Rows))
	return nil
}

// play prints each line as soon as its verdict is known.
func play(ctx context.Context, w *e2e.World) error {
	failed := 0
	printLine("rule", "should", fmt.Sprintf("what %d requests did", e2e.Requests), "holds")
	for _, row := range e2e.Rows {
		v, err := w.Play(ctx, row)
		if err != nil {
			return fmt.Errorf("%s: %w", row.Title(), err)
		}
		holds := "yes"
		if v.Wrong != "" {
			holds = "NO: " + v.Wrong
			failed++
		}
		printLine(row.Title(), row.Should, v.Did, holds)
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d lines do not hold", failed, len(e2e.Rows))
	}
	return nil
}

// printLine aligns the columns of all rows.
func printLine(rule, should, did, holds string) {
	ruleWidth, shouldWidth := len("rule"), len("should")
	for _, row := range e2e.Rows {
		ruleWidth = max(ruleWidth, len(row.Title()))
		shouldWidth = max(shouldWidth, len(row.Should))
	}
	const didWidth = 52
	fmt.Printf("%-*s  %-*s  %-*s  %s\n", ruleWidth, rule, shouldWidth, should, didWidth, did, holds)
}
