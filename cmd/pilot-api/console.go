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
)

// console is whom a command beside the server talks to.
type console struct {
	stdout, stderr io.Writer
}

// command completes one that takes flags and one file.
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

// subcommand refuses words that are none.
func subcommand(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("%w: there is no %q in '%s'", errUsage, args[0], cmd.CommandPath())
	}
	return nil
}

// log is for what goes wrong below.
func (c *console) log() *slog.Logger {
	return slog.New(slog.NewTextHandler(c.stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

func (c *console) warn(err error) {
	if err != nil {
		fmt.Fprintf(c.stderr, "pilot-api: warning: %v\n", err)
	}
}

// draw shows how far a long work is, where somebody looks.
func (c *console) draw(format string, args ...any) {
	if f, ok := c.stderr.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		fmt.Fprintf(c.stderr, "\r\033[K"+format, args...)
	}
}

func (c *console) clear() { c.draw("") }

// progress draws how much of a total was written.
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
