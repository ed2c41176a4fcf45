package writes

import (
	"context"
	"errors"
	"fmt"

	"github.com/pilot-api/pilot-api/client"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/cli"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/printer"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

// Options are the flags of every verb that changes objects.
type Options struct {
	Output string
	DryRun string
}

// Client returns the options of the client for the changes.
func (o Options) Client(warn func(string)) client.Options {
	return client.Options{Warn: warn, DryRun: o.DryRun == DryRunServer}
}

// Outcome is the result for one object, in one word.
type Outcome string

const (
	Created   Outcome = "created"
	Replaced  Outcome = "replaced"
	Unchanged Outcome = "unchanged"
	Checked   Outcome = "checked" // only the server knows what an apply would do
	Deleted   Outcome = "deleted"
	Deleting  Outcome = "marked for deletion: it stays until its finalizers are gone"
	Absent    Outcome = "not found"
	Failed    Outcome = "failed"
	notSent   Outcome = "not sent"
)

// Step handles one object of a command that changes many.
type Step struct {
	// Object is the object as far as it is known before the step. A delete needs only its
	// name.
	Object *schema.Object
	// Do sends the one or few requests of the step.
	Do func(context.Context) (*schema.Object, Outcome, error)
	// Promise is the outcome to show for a dry run.
	Promise Outcome
}

// Perform does the steps in order, reports each, and prints the total. A failed step does
// not stop the next one, unless the server cannot be reached.
func Perform(ctx context.Context, s *cli.Session, flags Options, steps []Step) error {
	r, err := NewReport(s, flags, len(steps))
	if err != nil {
		return err
	}
	for i, step := range steps {
		r.Progress(i)
		if lost := r.take(ctx, step); lost {
			r.abandon(steps[i+1:])
			break
		}
	}
	return r.Finish()
}

// NewReport returns an empty report about a number of objects.
func NewReport(s *cli.Session, flags Options, total int) (r *Report, err error) {
	r = &Report{session: s, Total: total, counts: map[Outcome]int{}, dryRun: flags.DryRun}
	if flags.Output != "" {
		r.printer, err = printer.New(flags.Output)
	}
	return r, err
}

func (r *Report) take(ctx context.Context, st Step) (lost bool) {
	if r.dryRun == DryRunClient {
		r.Done(st.Object, st.Promise)
		return false
	}
	o, what, err := st.Do(ctx)
	if err != nil {
		r.Failure(st.Object, r.session.Explain(ctx, err)+st.doubt(err))
		return ctx.Err() != nil || errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrOutcomeUnknown)
	}
	r.Done(o, what)
	return false
}

// doubt says what to do if it is not known whether a step was done.
func (st Step) doubt(err error) string {
	done, advice := st.Promise, "run 'istioctl apply' to be sure"
	switch {
	case !errors.Is(err, store.ErrOutcomeUnknown):
		return ""
	case st.Promise == Deleted:
		advice = "run it again with --ignore-not-found"
	case st.Promise == Checked:
		done = "applied" // A write got no answer. The word checked describes no write.
	}
	o := st.Object
	look := fmt.Sprintf("'istioctl get %s %s -n %s'", o.Kind.Singular, o.Meta.Name, o.Meta.Namespace)
	return fmt.Sprintf("; it may or may not be %s: look with %s, or %s", done, look, advice)
}
