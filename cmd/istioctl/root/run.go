package root

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

	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/cli"
)

func process(version string) *cli.Program {
	return &cli.Program{
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		StdinIsTerminal:  term.IsTerminal(int(os.Stdin.Fd())),
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

// Main runs one command line until it is done or interrupted. A second interrupt kills
// the program.
func Main(version string, args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	return Run(ctx, process(version), args)
}

// Run runs one command line and returns the exit code.
func Run(ctx context.Context, c *cli.Program, args []string) int {
	out := &keeper{Writer: c.Stdout}
	inside, flush := c.Escaped(out)
	root := New(inside)
	refuseUnknownHelp(root)
	root.SetArgs(args)
	root.SetFlagErrorFunc(flagError(args))
	cmd, err := root.ExecuteContextC(ctx)
	flush() // The keeper has the error.
	if err == nil && out.err != nil {
		err = fmt.Errorf("the result could not be printed: %w", out.err)
	}
	switch {
	case err == nil:
		return cli.ExitDone
	case cli.IsUsage(err):
		fmt.Fprintf(inside.Stderr, "error: %v\nSee '%s --help'.\n", err, cmd.CommandPath())
		return cli.ExitUsage
	case !errors.Is(err, cli.ErrReported):
		fmt.Fprintf(inside.Stderr, "error: %v\n", err)
	}
	if ctx.Err() != nil {
		return cli.ExitInterrupted
	}
	return cli.ExitCode(err)
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
