package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"os/user"
	"syscall"

	"golang.org/x/term"
)

func process() *CLI {
	return &CLI{
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		StdoutIsTerminal: term.IsTerminal(int(os.Stdout.Fd())),
		StderrIsTerminal: term.IsTerminal(int(os.Stderr.Fd())),
		Getenv:           os.Getenv,
		User:             osUser,
	}
}

// osUser returns the name of the current user. It is "" in a container that has no
// name for the user.
func osUser() string {
	u, err := user.Current()
	if err != nil {
		return ""
	}
	return u.Username
}

// Main runs one command line until it is done or interrupted. A second interrupt kills
// the program.
func (c *CLI) Main(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	return c.Run(ctx, args)
}

// Run runs one command line and returns the exit code.
func (c *CLI) Run(ctx context.Context, args []string) int {
	out := &keeper{Writer: c.Stdout}
	watched := *c
	stdout, stderr := newStream(out, c.StdoutIsTerminal), newStream(c.Stderr, c.StderrIsTerminal)
	watched.Stdout, watched.Stderr, watched.outside = stdout, stderr, c
	root := newRoot(&watched)
	root.SetArgs(args)
	root.SetFlagErrorFunc(flagError(args))
	cmd, err := root.ExecuteContextC(ctx)
	_, _ = stdout.Flush(), stderr.Flush() // The keeper has the error.
	if err == nil && out.err != nil {
		err = fmt.Errorf("what was done could not be shown: %w", out.err)
	}
	code := exitFailed
	var usage *usageError
	var own *exitError
	if errors.As(err, &own) {
		code = own.code
	}
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &usage):
		fmt.Fprintf(stderr, "error: %v\nSee '%s --help'.\n", err, cmd.CommandPath())
		return exitUsage
	case !errors.Is(err, errReported):
		fmt.Fprintf(stderr, "error: %v\n", err)
	}
	if ctx.Err() != nil {
		return exitInterrupted
	}
	return code
}

// keeper remembers whether a write failed. A disk may fill up after the first of many
// lines.
type keeper struct {
	io.Writer
	err error
}

func (k *keeper) Write(p []byte) (int, error) {
	n, err := k.Writer.Write(p)
	if err != nil {
		k.err = err
	}
	return n, err
}
