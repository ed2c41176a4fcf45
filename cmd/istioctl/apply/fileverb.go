package apply

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/pilot-api/pilot-api/client"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/cli"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/manifest"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/printer"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/writes"
	"github.com/pilot-api/pilot-api/cmd/istioctl/wait"
	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/schema"
)

// Options are the values of the flags of a verb that writes the objects of files.
type Options struct {
	// Connect connects to the server.
	Connect func(client.Options) (Writer, error)

	writes.Options
	files manifest.Files
	wait  bool // until the proxies run it

	set    SetFlags
	failOn failOn
}

func (f *Options) add(cmd *cobra.Command, formats []string) {
	f.files.Add(cmd)
	printer.AddFlag(cmd, &f.Output, formats)
	writes.AddDryRun(cmd, &f.DryRun, `"server": the server checks, and reports what it would do; "client": check the files, write nothing; or "none"`,
		writes.DryRunNone, writes.DryRunServer, writes.DryRunClient)
}

// fileVerb does one thing to every object of its files.
type fileVerb struct {
	preconditions []manifest.Precondition
	// promise is the outcome that a dry run shows.
	promise writes.Outcome
	do      func(context.Context, Texts, manifest.Manifest) (*schema.Object, writes.Outcome, error)
	// applies is true for a verb that can wait for the proxies and do all at once.
	applies bool
}

func (v fileVerb) run(ctx context.Context, s *cli.Session, flags Options) error {
	preconditions := v.preconditions
	if flags.set.Given() {
		preconditions = flags.set.Preconditions("apply")
	}
	list, ofFiles, err := manifest.ReadWithWarnings(ctx, s, flags.files, preconditions...)
	if err != nil {
		return err
	}
	manifest.ReferencedFirst(list)
	if flags.failOn == failOn(diag.Warning) {
		if err := checkWarnings(ctx, s, flags, list, ofFiles); err != nil {
			return err
		}
	}
	warnings := HoldWarnings(s, len(list) > 1, func(as client.Options) (Judges, error) { return flags.Connect(as) })
	c, err := flags.Connect(flags.Client(warnings.Tell))
	if err != nil {
		return err
	}
	together, err := v.each(ctx, s, c, flags, list)
	if together {
		warnings.Release()
	} else {
		warnings.Judge(ctx, list)
	}
	if err != nil || !flags.wait {
		return err
	}
	return wait.Programmed(ctx, s, c, keysOf(list))
}

// keysOf returns the keys of the objects whose names are known.
func keysOf(list []manifest.Manifest) (keys []schema.Key) {
	for _, m := range list {
		if m.Meta.Name != "" {
			keys = append(keys, m.Key())
		}
	}
	return keys
}

// each handles the objects one after the other, or as a set, and reports whether they
// were sent together.
func (v fileVerb) each(ctx context.Context, s *cli.Session, c Writer, flags Options, list []manifest.Manifest) (together bool, err error) {
	if flags.set.Given() {
		t := newSet(s, c, flags.set, list)
		err := t.apply(ctx, flags)
		return t.transactions <= 1, err
	}
	var steps []writes.Step
	for _, m := range list {
		steps = append(steps, writes.Step{
			Object: m.Object, Promise: v.promise,
			Do: func(ctx context.Context) (*schema.Object, writes.Outcome, error) { return v.do(ctx, c, m) },
		})
	}
	return false, writes.Perform(ctx, s, flags.Options, steps)
}

func (v fileVerb) command(s *cli.Session, cmd *cobra.Command) *cobra.Command {
	flags := Options{Connect: connectTo(s)}
	cmd.Args = manifest.NoArgs
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := errors.Join(flags.files.Required(), printer.Check(flags.Output, printer.WriteFormats)); err != nil {
			return err
		}
		if err := errors.Join(flags.set.Check(), flags.failOn.check(flags.DryRun)); err != nil {
			return err
		}
		if flags.set.prune && flags.DryRun == writes.DryRunClient {
			return cli.Usagef("--prune --dry-run=client: only the server knows what would be deleted; use --dry-run=server")
		}
		if flags.wait && flags.DryRun != writes.DryRunNone {
			return cli.Usagef("--wait and --dry-run=%s: nothing is stored that proxies could run", flags.DryRun)
		}
		return v.run(cmd.Context(), s, flags)
	}
	flags.add(cmd, printer.WriteFormats)
	if v.applies {
		cmd.Flags().BoolVar(&flags.set.atomic, "atomic", false, "make all changes in one transaction, or none of them")
		flags.set.Add(cmd)
		flags.failOn.add(cmd)
		cmd.Flags().BoolVar(&flags.wait, "wait", false, "wait until the proxies run the objects, for a minute or --timeout; see 'istioctl wait'")
	}
	return cmd
}
