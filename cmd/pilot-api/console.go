package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/pilot-api/pilot-api/internal/terminal"
)

// console is the output of the commands beside the server.
type console struct {
	stdout io.Writer
	stderr errorStream
}

// errorStream is stderr with terminal control characters escaped.
type errorStream struct {
	*terminal.Writer
	isTerminal bool
}

func newErrorStream(w io.Writer) errorStream {
	f, ok := w.(*os.File)
	return errorStream{terminal.NewWriter(w), ok && term.IsTerminal(int(f.Fd()))}
}

// command completes a command that takes flags and one file.
func (c *console) command(cmd *cobra.Command, register func(*pflag.FlagSet), run func(context.Context, []string) error) *cobra.Command {
	flags := pflag.NewFlagSet(cmd.Name(), pflag.ContinueOnError)
	register(flags)
	cmd.Flags().AddFlagSet(flags)
	cmd.PreRunE = func(*cobra.Command, []string) error { return fromEnvironment(flags, os.LookupEnv) }
	cmd.Args = oneFile
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return run(cmd.Context(), args) }
	return cmd
}

func oneFile(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("%w: %s takes one FILE, found %d", errUsage, cmd.CommandPath(), len(args))
	}
	return nil
}

// subcommand refuses unknown subcommands.
func subcommand(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("%w: there is no %q in '%s'", errUsage, args[0], cmd.CommandPath())
	}
	return nil
}

// log returns a logger for warnings of the packages below.
func (c *console) log() *slog.Logger {
	return slog.New(slog.NewTextHandler(c.stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

func (c *console) warn(err error) {
	if err != nil {
		fmt.Fprintf(c.stderr, "pilot-api: warning: %v\n", err)
	}
}

// draw shows the progress of long work if stderr is a terminal.
func (c *console) draw(format string, args ...any) {
	if c.stderr.isTerminal {
		_ = c.stderr.Redraw(fmt.Sprintf(format, args...)) // Nothing can be reported if stderr fails.
	}
}

func (c *console) clear() { c.draw("") }

// progress is a writer that draws how much of a total has been written.
type progress struct {
	io.Writer
	*console
	written, total int64
}

func (p *progress) Write(text []byte) (int, error) {
	n, err := p.Writer.Write(text)
	p.written += int64(n)
	p.draw("%d of %d MiB", p.written>>20, p.total>>20)
	return n, err
}
