package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/pilot-api/pilot-api/internal/release"
	"github.com/pilot-api/pilot-api/internal/terminal"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store/etcd/embedded"
)

// Exit codes. A supervisor may restart the server after exitFailed. After exitStore
// a person should first look at the data folder or its disk.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
	exitStore  = 3
)

// version is a semantic version. The linker sets version and commit (see Makefile).
var version, commit = release.Version, ""

// errUsage marks mistakes in the command line.
var errUsage = errors.New("usage")

// Main runs the program with the given arguments until ctx ends or something
// fails, and returns its exit code.
func Main(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	shown, errs := terminal.NewWriter(stdout), newErrorStream(stderr)
	defer func() { _ = errs.Flush() }() // No place is left to report to.
	out := bufio.NewWriter(shown)
	cmd := newCommand(out, errs)
	cmd.SetArgs(args)
	cmd.SetOut(out)
	cmd.SetErr(errs)
	err := cmd.ExecuteContext(ctx)
	if unwritten := cmp.Or(out.Flush(), shown.Flush()); err == nil && unwritten != nil {
		err = fmt.Errorf("the result could not be printed: %w", unwritten)
	}
	switch {
	case err == nil:
		return exitDone
	case errors.Is(err, errUsage):
		fmt.Fprintf(errs, "pilot-api: %v\nTry 'pilot-api --help'.\n", err)
		return exitUsage
	case errors.Is(err, embedded.ErrFailed):
		fmt.Fprintf(errs, "pilot-api: %v\n", err)
		return exitStore
	default:
		fmt.Fprintf(errs, "pilot-api: %v\n", err)
		return exitFailed
	}
}

func newCommand(stdout io.Writer, stderr errorStream) *cobra.Command {
	var o options
	flags := pflag.NewFlagSet("pilot-api", pflag.ContinueOnError)
	o.register(flags)
	cmd := &cobra.Command{
		Use:   "pilot-api",
		Short: "A service mesh control plane that needs no Kubernetes",
		Long: `pilot-api stores routing rules and the service registry in etcd, serves them by a
REST API that follows the Kubernetes conventions, and configures every Envoy.

Without --etcd-endpoints it runs an embedded etcd with its data in --data-dir.
Each flag can also be set in the environment: --data-dir as PILOT_DATA_DIR.

Exit codes: 0 stopped by a signal, 1 failure, 2 wrong usage, 3 the embedded etcd
cannot continue because its disk is full or broken, or its data cannot be read.`,
		Example: `  # Everything in one process, data in ./pilot-data
  pilot-api

  # Another address and mesh settings
  pilot-api --listen 127.0.0.1:9090 --mesh-config mesh.yaml

  # Two or more equal replicas over one etcd cluster
  pilot-api --etcd-endpoints https://etcd-1:2379,https://etcd-2:2379 --etcd-ca ca.pem`,
		Args:          noArgs,
		Version:       version,
		SilenceUsage:  true,
		SilenceErrors: true,
		PreRunE: func(*cobra.Command, []string) error {
			if err := fromEnvironment(flags, os.LookupEnv); err != nil {
				return err
			}
			if err := refuseMisspelt(flags, os.Environ()); err != nil {
				return err
			}
			if err := o.validate(); err != nil {
				return err
			}
			return o.validateEmbedded(flags)
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			log, err := o.logger(stderr)
			if err != nil {
				return err
			}
			return run(cmd.Context(), o, log)
		},
	}
	cmd.Flags().AddFlagSet(flags)
	c := &console{stdout, stderr}
	cmd.AddCommand(newSnapshot(c), newDefragment(c), newMigrate(c))
	cmd.CompletionOptions.DisableDefaultCmd = true
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return fmt.Errorf("%w: %w", errUsage, err) })
	return cmd
}

func noArgs(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("%w: no arguments are taken, found %q", errUsage, args[0])
	}
	return nil
}

const variablePrefix = "PILOT_"

// variable returns the name of the environment variable that sets a flag.
func variable(f *pflag.Flag) string {
	return variablePrefix + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
}

// fromEnvironment sets every flag that is not on the command line from its PILOT_…
// variable, if there is one.
func fromEnvironment(flags *pflag.FlagSet, lookup func(string) (string, bool)) error {
	var err error
	flags.VisitAll(func(f *pflag.Flag) {
		name := variable(f)
		value, ok := lookup(name)
		if !ok || f.Changed || err != nil {
			return
		}
		if e := flags.Set(f.Name, value); e != nil {
			err = fmt.Errorf("%w: %s=%q: %w", errUsage, name, value, e)
		}
	})
	return err
}

// refuseMisspelt returns an error for a variable whose name is close to that of a
// flag's variable. Other variables with the prefix belong to other programs.
func refuseMisspelt(flags *pflag.FlagSet, environment []string) error {
	var known []string
	flags.VisitAll(func(f *pflag.Flag) { known = append(known, variable(f)) })
	for _, entry := range environment {
		name, _, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(name, variablePrefix) || slices.Contains(known, name) {
			continue
		}
		if meant := schema.Nearest(name, known); meant != "" {
			return fmt.Errorf("%w: %s in the environment is of no flag: did you mean %s?", errUsage, name, meant)
		}
	}
	return nil
}

// loopbackOnly reports whether an address is reachable only from this machine.
func loopbackOnly(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || (ip != nil && ip.IsLoopback())
}
