package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/pilot-api/pilot-api/client"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

// writeFlags are the flags of every verb that changes objects.
type writeFlags struct {
	files  fileFlags
	output string
	dryRun string
	wait   bool // until the proxies run it

	atomic atomicFlags
}

// connect makes the client for the changes.
func (f *writeFlags) connect(s *session, warn func(string)) (*client.Client, error) {
	return s.connectWith(client.Options{Warn: warn, DryRun: f.dryRun == dryRunServer})
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
	list, err := s.manifests(ctx, flags.files, preconditions...)
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
	return s.waitFor(ctx, c, list)
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
	return s.perform(ctx, flags, steps)
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

// outcome is the result for one object, in one word.
type outcome string

const (
	created   outcome = "created"
	replaced  outcome = "replaced"
	unchanged outcome = "unchanged"
	checked   outcome = "checked" // only the server knows what an apply would do
	deleted   outcome = "deleted"
	deleting  outcome = "marked for deletion: it stays until its finalizers are gone"
	absent    outcome = "not found"
	failed    outcome = "failed"
	notSent   outcome = "not sent"
)

// step handles one object of a command that changes many.
type step struct {
	// object is the object as known beforehand. A delete needs only its name.
	object *schema.Object
	// do sends the one or few requests of the step.
	do func(context.Context) (*schema.Object, outcome, error)
	// promise is the outcome that a dry run shows.
	promise outcome
}

// perform does the steps in order, reports each, and sums up. A failed step does not
// stop the next one, unless the server cannot be reached.
func (s *session) perform(ctx context.Context, flags writeFlags, steps []step) error {
	r, err := s.report(flags, len(steps))
	if err != nil {
		return err
	}
	for i, step := range steps {
		r.progress(i)
		if lost := s.take(ctx, r, step); lost {
			r.abandon(steps[i+1:])
			break
		}
	}
	return r.finish()
}

// report returns an empty report about a number of objects.
func (s *session) report(flags writeFlags, total int) (r *report, err error) {
	r = &report{session: s, total: total, counts: map[outcome]int{}, dryRun: flags.dryRun}
	if flags.output != "" {
		r.printer, err = objectPrinter(flags.output)
	}
	return r, err
}

func (s *session) take(ctx context.Context, r *report, st step) (lost bool) {
	if r.dryRun == dryRunClient {
		r.done(st.object, st.promise)
		return false
	}
	o, what, err := st.do(ctx)
	if err != nil {
		r.failure(st.object, s.explain(ctx, err)+st.doubt(err))
		return ctx.Err() != nil || errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrOutcomeUnknown)
	}
	r.done(o, what)
	return false
}

// doubt says what to do if it is not known whether a step was done.
func (st step) doubt(err error) string {
	done, advice := st.promise, "run 'istioctl apply' to be sure"
	switch {
	case !errors.Is(err, store.ErrOutcomeUnknown):
		return ""
	case st.promise == deleted:
		advice = "run it again with --ignore-not-found"
	case st.promise == checked:
		done = "applied" // A write got no answer. The word checked describes no write.
	}
	o := st.object
	look := fmt.Sprintf("'istioctl get %s %s -n %s'", o.Kind.Singular, o.Meta.Name, o.Meta.Namespace)
	return fmt.Sprintf("; it may or may not be %s: look with %s, or %s", done, look, advice)
}
