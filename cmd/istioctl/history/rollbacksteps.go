package history

import (
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/cli"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/writes"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

// rollBackInSteps rolls back in several steps and reports each step when it is done.
func rollBackInSteps(ctx context.Context, s *cli.Session, c Rewinder, flags RollbackOptions, scope store.Scope) error {
	r, err := writes.NewReport(s, writes.Options{DryRun: flags.dryRun}, 0)
	if err != nil {
		return err
	}
	told, changed, remaining := 0, 0, 0
	for step, err := range c.RollbackInSteps(ctx, scope, int64(flags.to)) {
		switch {
		case err != nil && told == 0 && changed == 0:
			return notRolledBack(ctx, s, c, scope, int64(flags.to), err)
		case err != nil:
			return brokenOff(ctx, s, r, flags, changed, remaining, err)
		}
		changed, remaining = changed+len(step.Results), step.Remaining
		told += len(step.Results) + len(step.Undone)
		r.Total = told + remaining
		for _, result := range step.Results {
			r.Done(result.Object, rolledBack(result))
		}
		for _, u := range step.Undone {
			r.Failure(objectNamed(u.Key), u.Message)
		}
		r.Progress(told)
	}
	if told == 0 {
		return nothingToRollBack(ctx, s, c, flags, scope)
	}
	err = r.Finish()
	if left := r.Failed(); left > 0 && flags.dryRun != writes.DryRunServer {
		fmt.Fprintf(s.Stderr, "%s not as at revision %d. The same command tries again, and overwrites what others changed meanwhile.\n",
			areObjects(left), flags.to)
	}
	return err
}

// brokenOff returns the error of a rollback that ended after some of its steps.
func brokenOff(ctx context.Context, s *cli.Session, r *writes.Report, flags RollbackOptions, changed, remaining int, err error) error {
	if r.Finish() == nil && flags.dryRun == writes.DryRunServer {
		return s.Fail(ctx, err)
	}
	return fmt.Errorf("%s; the rollback to revision %d is not complete: %d changed, about %d still to change; run the same command again to go on",
		strings.TrimSpace(s.Explain(ctx, err)), flags.to, changed, remaining)
}

func areObjects(n int) string {
	if n == 1 {
		return "1 object is"
	}
	return fmt.Sprintf("%d objects are", n)
}

// objectNamed returns an object of which only the key is known.
func objectNamed(key schema.Key) *schema.Object {
	kind, _ := schema.KindByName(key.Kind)
	return &schema.Object{Kind: kind, Meta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
}
