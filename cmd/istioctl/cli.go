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

func process(version string) *Program {
	return &Program{
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		StdoutIsTerminal: term.IsTerminal(int(os.Stdout.Fd())),
		StderrIsTerminal: term.IsTerminal(int(os.Stderr.Fd())),
		Getenv:           os.Getenv,
		Version:          version,
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

// MainProgram runs one command line until it is done or interrupted. A second interrupt kills
// the program.
func MainProgram(version string, args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	return RunProgram(ctx, process(version), args)
}

// RunProgram runs one command line and returns the exit code.
func RunProgram(ctx context.Context, c *Program, args []string) int {
	out := &keeper{Writer: c.Stdout}
	inside, flush := c.Escaped(out)
	root := NewRoot(inside)
	root.SetArgs(args)
	root.SetFlagErrorFunc(flagError(args))
	cmd, err := root.ExecuteContextC(ctx)
	flush() // The keeper has the error.
	if err == nil && out.err != nil {
		err = fmt.Errorf("what was done could not be shown: %w", out.err)
	}
	switch {
	case err == nil:
		return ExitDone
	case IsUsage(err):
		fmt.Fprintf(inside.Stderr, "error: %v\nSee '%s --help'.\n", err, cmd.CommandPath())
		return ExitUsage
	case !errors.Is(err, ErrReported):
		fmt.Fprintf(inside.Stderr, "error: %v\n", err)
	}
	if ctx.Err() != nil {
		return ExitInterrupted
	}
	return ExitCode(err)
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
