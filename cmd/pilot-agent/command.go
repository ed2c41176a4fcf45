package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pilot-api/pilot-api/internal/release"
	"github.com/pilot-api/pilot-api/internal/terminal"
)

// Exit codes, for scripts and init systems.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
)

// version is a semantic version. The linker sets version and commit (see Makefile).
var version, commit = release.Version, ""

// errUsage marks mistakes in the command line.
var errUsage = errors.New("usage")

// errReported ends a command that has already reported its failure.
var errReported = errors.New("failed")

// Main runs the program with the given arguments and returns its exit code.
func Main(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	shown, said := terminal.NewWriter(stdout), terminal.NewWriter(stderr)
	defer func() { _ = said.Flush() }() // No place is left to report to.
	out := bufio.NewWriter(shown)
	cmd := newRoot()
	cmd.SetArgs(args)
	cmd.SetOut(out)
	cmd.SetErr(said)
	err := cmd.ExecuteContext(ctx)
	if unwritten := cmp.Or(out.Flush(), shown.Flush()); err == nil && unwritten != nil {
		err = fmt.Errorf("the result could not be printed: %w", unwritten)
	}
	switch {
	case err == nil:
		return exitDone
	case errors.Is(err, errReported):
		return exitFailed
	case errors.Is(err, errUsage):
		fmt.Fprintf(said, "%sTry 'pilot-agent --help'.\n", errorLines(err))
		return exitUsage
	default:
		fmt.Fprint(said, errorLines(err))
		return exitFailed
	}
}

// errorLines returns an error with the name of the program before each mistake.
func errorLines(err error) string {
	var out strings.Builder
	for line := range strings.Lines(strings.TrimPrefix(err.Error(), errUsage.Error()+": ") + "\n") {
		if strings.HasPrefix(line, " ") {
			out.WriteString(line)
			continue
		}
		out.WriteString("pilot-agent: " + line)
	}
	return out.String()
}

func usage(err error) error { return fmt.Errorf("%w: %w", errUsage, err) }

func newRoot() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "pilot-agent",
		Short: "The agent of a mesh member",
		Long: `pilot-agent runs on the machine of a workload, beside its proxy. It decides which
connections of the machine go through the proxy.

Exit codes: 0 success, 1 failure, 2 wrong usage.`,
		Example: `  # Send the connections of this machine through its proxy
  pilot-agent capture install

  # See if that works
  pilot-agent capture check`,
		Version:           versionText(),
		SilenceUsage:      true,
		SilenceErrors:     true,
		DisableAutoGenTag: true,
		Args:              known,
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.CompletionOptions.DisableDefaultCmd = true
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usage(err) })
	cmd.AddCommand(newCapture(), newCompletion())
	return cmd
}

func versionText() string {
	if commit == "" {
		return version
	}
	return version + " (" + commit + ")"
}

// known refuses arguments of a command that only has commands below it.
func known(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	message := fmt.Sprintf("%s has no command %q", cmd.CommandPath(), args[0])
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		message += "; did you mean " + strings.Join(near, " or ") + "?"
	}
	return usage(errors.New(message))
}

func noArgs(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usage(fmt.Errorf("no arguments are taken, found %q", args[0]))
	}
	return nil
}
