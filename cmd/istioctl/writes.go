package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/pilot-api/pilot-api/client"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

// writeOptions are the flags of every verb that changes objects.
type writeOptions struct {
	output string
	dryRun string
}

// connect makes the client for the changes.
func (o writeOptions) connect(s *session, warn func(string)) (*client.Client, error) {
	return s.connectWith(client.Options{Warn: warn, DryRun: o.dryRun == dryRunServer})
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
func perform(ctx context.Context, s *session, flags writeOptions, steps []step) error {
	r, err := newReport(s, flags, len(steps))
	if err != nil {
		return err
	}
	for i, step := range steps {
		r.progress(i)
		if lost := r.take(ctx, step); lost {
			r.abandon(steps[i+1:])
			break
		}
	}
	return r.finish()
}

// newReport returns an empty report about a number of objects.
func newReport(s *session, flags writeOptions, total int) (r *report, err error) {
	r = &report{session: s, total: total, counts: map[outcome]int{}, dryRun: flags.dryRun}
	if flags.output != "" {
		r.printer, err = objectPrinter(flags.output)
	}
	return r, err
}

func (r *report) take(ctx context.Context, st step) (lost bool) {
	if r.dryRun == dryRunClient {
		r.done(st.object, st.promise)
		return false
	}
	o, what, err := st.do(ctx)
	if err != nil {
		r.failure(st.object, r.session.explain(ctx, err)+st.doubt(err))
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
