package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/pilot-api/pilot-api/client"
	"github.com/pilot-api/pilot-api/schema"
)

// writeFlags are the flags of every verb that writes the objects of files.
type writeFlags struct {
	writeOptions
	files fileFlags
	wait  bool // until the proxies run it

	atomic atomicFlags
}

func (f *writeFlags) add(cmd *cobra.Command, formats []string) {
	f.files.add(cmd)
	addOutput(cmd, &f.output, formats)
	addDryRun(cmd, &f.dryRun, `"server": the server checks, and tells what it would do; "client": check the files, send nothing; or "none"`,
		dryRunNone, dryRunServer, dryRunClient)
}

// fileVerb does one thing to every object of its files.
type fileVerb struct {
	preconditions []precondition
	// promise is the outcome that a dry run shows.
	promise outcome
	do      func(context.Context, *client.Client, manifest) (*schema.Object, outcome, error)
	// applies is true for a verb that can wait for the proxies and do all at once.
	applies bool
}

func (v fileVerb) run(ctx context.Context, s *session, flags writeFlags) error {
	preconditions := v.preconditions
	if flags.atomic.given() {
		preconditions = flags.atomic.preconditions()
	}
	list, err := readManifests(ctx, s, flags.files, preconditions...)
	if err != nil {
		return err
	}
	warnings := warningsOf(s, len(list) > 1 && !flags.atomic.given())
	c, err := flags.connect(s, warnings.tell)
	if err != nil {
		return err
	}
	referencedFirst(list)
	err = v.each(ctx, s, c, flags, list)
	warnings.judge(ctx, list)
	if err != nil || !flags.wait {
		return err
	}
	return waitFor(ctx, s, c, keysOf(list))
}

// keysOf returns the keys of the objects whose names are known.
func keysOf(list []manifest) (keys []schema.Key) {
	for _, m := range list {
		if m.Meta.Name != "" {
			keys = append(keys, m.Key())
		}
	}
	return keys
}

// each handles the objects one after the other, or all at once.
func (v fileVerb) each(ctx context.Context, s *session, c *client.Client, flags writeFlags, list []manifest) error {
	if flags.atomic.given() {
		t := atomicApply{s, c, flags.atomic, list}
		return t.apply(ctx, flags)
	}
	var steps []step
	for _, m := range list {
		steps = append(steps, step{
			object: m.Object, promise: v.promise,
			do: func(ctx context.Context) (*schema.Object, outcome, error) { return v.do(ctx, c, m) },
		})
	}
	return perform(ctx, s, flags.writeOptions, steps)
}

func (v fileVerb) command(s *session, cmd *cobra.Command) *cobra.Command {
	var flags writeFlags
	cmd.Args = noFileArgs
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := errors.Join(flags.files.required(), checkOutput(flags.output, writeFormats)); err != nil {
			return err
		}
		if err := flags.atomic.check(flags.dryRun); err != nil {
			return err
		}
		if flags.wait && flags.dryRun != dryRunNone {
			return usagef("--wait and --dry-run=%s: nothing is stored that proxies could run", flags.dryRun)
		}
		return v.run(cmd.Context(), s, flags)
	}
	flags.add(cmd, writeFormats)
	if v.applies {
		flags.atomic.add(cmd)
		cmd.Flags().BoolVar(&flags.wait, "wait", false, "wait until the proxies run the objects, for a minute or --timeout; see 'istioctl wait'")
	}
	return cmd
}
