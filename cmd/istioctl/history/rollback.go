package history

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pilot-api/pilot-api/client"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/cli"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/past"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/targets"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/writes"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

// Rewinder returns objects to an earlier state.
type Rewinder interface {
	past.Historian
	past.Clock
	Rollback(ctx context.Context, scope store.Scope, revision int64) ([]client.Result, error)
	RollbackInSteps(ctx context.Context, scope store.Scope, revision int64) iter.Seq2[*client.RollbackStep, error]
}

// RollbackOptions has the flags of rollback.
type RollbackOptions struct {
	// Connect connects to the server.
	Connect func(client.Options) (Rewinder, error)

	to     past.Revision
	kind   string
	dryRun string
	atomic bool
}

// NewRollbackCommand returns the command rollback.
func NewRollbackCommand(s *cli.Session) *cobra.Command {
	flags := RollbackOptions{Connect: func(as client.Options) (Rewinder, error) { return s.ConnectWith(as) }}
	cmd := &cobra.Command{
		Use:   "rollback (KIND NAME | KIND/NAME | --namespace NAMESPACE [--kind KIND]) --to REVISION",
		Short: "Return an object or a namespace to its state at a revision",
		Long: `Return an object, or all objects of a namespace, to their state at a revision. This
reverts later changes, restores deleted objects, and deletes objects that were created
later. It is one transaction: proxies see all changes at once, and nothing is changed
if an object cannot be rolled back or somebody changes it meanwhile. istioctl asks for
no confirmation; --dry-run shows the changes. A rollback is a change like any other,
and can be rolled back too.

If more objects of a namespace would change than one transaction allows (1,000,
pilot-api --max-transaction), the rollback has several steps. Each step is a
transaction. Objects are written before those that refer to them, and deleted after
them. If somebody changes an object meanwhile, istioctl leaves it unchanged, reports it,
and exits with 1. If a rollback is interrupted, run the same command again to complete
it. With --atomic it is one transaction, or nothing is changed.

'istioctl history' lists the revisions. The server keeps a limited number of changes of
each object (pilot-api --history).`,
		Example: `  # See an earlier version of an object, and return to it
  istioctl history virtualservice reviews
  istioctl rollback virtualservice reviews --to 1204

  # See what a rollback of a namespace would change
  istioctl rollback --namespace books --to 1204 --dry-run

  # Roll back a namespace in one transaction, or change nothing
  istioctl rollback --namespace books --to 1204 --atomic

  # Roll back only its route rules
  istioctl rollback --namespace books --kind routerule --to 1204`,
		ValidArgsFunction: targets.CompleteName(s),
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		scope, err := rollbackScope(s, flags, args)
		if err != nil {
			return err
		}
		return flags.Run(cmd.Context(), s, scope)
	}
	cmd.Flags().Var(&flags.to, "to", "the revision to return to")
	cmd.Flags().StringVar(&flags.kind, "kind", "", "for a namespace: only objects of this kind")
	cmd.Flags().BoolVar(&flags.atomic, "atomic", false, "roll back in one transaction, or change nothing if that is not possible")
	writes.AddDryRun(cmd, &flags.dryRun, `"server": report what would be done, and do nothing; or "none"`, writes.DryRunServer, writes.DryRunNone)
	cmd.Flags().Lookup("dry-run").NoOptDefVal = writes.DryRunServer
	// The flag exists, so this cannot fail.
	_ = cmd.RegisterFlagCompletionFunc("kind", func(_ *cobra.Command, _ []string, part string) ([]string, cobra.ShellCompDirective) {
		return targets.CompleteKinds(part), cobra.ShellCompDirectiveNoFileComp
	})
	return cmd
}

// rollbackScope refuses arguments that name neither an object nor a namespace. A whole
// namespace is never implied.
func rollbackScope(s *cli.Session, flags RollbackOptions, args []string) (store.Scope, error) {
	switch {
	case flags.to == 0:
		return store.Scope{}, cli.Usagef("say the revision to go back to with --to REVISION; 'istioctl history KIND NAME' shows them")
	case len(args) > 0 && flags.kind != "":
		return store.Scope{}, cli.Usagef("--kind is for a whole namespace: name an object, or a kind")
	case len(args) > 0:
		key, err := targets.One("rollback", s.Namespace, args)
		kind, _ := schema.KindByName(key.Kind)
		return store.Scope{Kind: kind, Namespace: key.Namespace, Name: key.Name}, err
	case !s.NamespaceGiven:
		return store.Scope{}, cli.Usagef("say which object (KIND NAME), or which namespace as a whole with --namespace")
	}
	scope := store.Scope{Namespace: s.Namespace}
	if flags.kind == "" || flags.kind == targets.EveryKind {
		return scope, nil
	}
	kind, err := targets.ParseKind(flags.kind)
	scope.Kind = kind
	return scope, err
}

// Run returns the objects of the scope to their state at the revision.
func (o RollbackOptions) Run(ctx context.Context, s *cli.Session, scope store.Scope) error {
	c, err := o.Connect(writes.Options{DryRun: o.dryRun}.Client(s.Warn))
	if err != nil {
		return err
	}
	if !o.atomic {
		return rollBackInSteps(ctx, s, c, o, scope)
	}
	results, err := c.Rollback(ctx, scope, int64(o.to))
	if err != nil {
		return notRolledBack(ctx, s, c, scope, int64(o.to), err)
	}
	if len(results) == 0 {
		return nothingToRollBack(ctx, s, c, o, scope)
	}
	r, err := writes.NewReport(s, writes.Options{DryRun: o.dryRun}, len(results))
	if err != nil {
		return err
	}
	for _, result := range results {
		r.Done(result.Object, rolledBack(result))
	}
	return r.Finish()
}

func nothingToRollBack(ctx context.Context, s *cli.Session, c Rewinder, flags RollbackOptions, scope store.Scope) error {
	what := "namespace " + scope.Namespace
	if scope.Name != "" {
		// "Nothing has changed" would suggest that the object is or was there.
		if _, err := past.Versions(ctx, s, c, keyOf(scope)); err != nil {
			return err
		}
		what = scope.Kind.Singular + "/" + scope.Name
	}
	fmt.Fprintf(s.Stderr, "Nothing to do: %s is as it was at revision %d.\n", what, flags.to)
	return nil
}

func rolledBack(r client.Result) writes.Outcome {
	switch {
	case r.Verb == store.OpCreate:
		return writes.Created
	case r.Verb == store.OpUpdate:
		return writes.Replaced
	case r.Object.Meta.DeletionTimestamp != nil:
		return writes.Deleting
	}
	return writes.Deleted
}

func keyOf(scope store.Scope) schema.Key {
	return schema.Key{Kind: scope.Kind.Kind, Namespace: scope.Namespace, Name: scope.Name}
}

// notRolledBack returns an error that says what to do instead.
func notRolledBack(ctx context.Context, s *cli.Session, c Rewinder, scope store.Scope, to int64, err error) error {
	text := strings.TrimSpace(s.Explain(ctx, err))
	switch {
	case errors.Is(err, store.ErrExpired) && scope.Name != "":
		return fmt.Errorf("%s/%s cannot go back to revision %d: %s; nothing was done", scope.Kind.Singular, scope.Name, to, nextKnown(ctx, s, c, scope, to))
	case errors.Is(err, store.ErrExpired):
		return fmt.Errorf("%s; nothing was done: choose a newer revision, or roll back other objects one by one", text)
	case errors.Is(err, store.ErrFuture):
		return cmp.Or(past.Reached(ctx, c, to), fmt.Errorf("revision %d is not reached yet", to))
	case errors.Is(err, store.ErrConflict), errors.Is(err, store.ErrExists):
		return fmt.Errorf("%s; nothing was done: see what changed, and run it again", text)
	}
	return errors.New(text)
}

// nextKnown says which revision an object can go back to instead, if that is known.
func nextKnown(ctx context.Context, s *cli.Session, c Rewinder, scope store.Scope, to int64) string {
	versions, err := c.History(ctx, keyOf(scope))
	for i := len(versions) - 1; err == nil && i >= 0; i-- {
		if v := versions[i]; !v.Lost && v.Revision > to {
			return fmt.Sprintf("what it was then is not known, the next revision that is known is %d (see 'istioctl history %s %s')",
				v.Revision, scope.Kind.Singular, scope.Name)
		}
	}
	return "its states of that time are no longer known"
}
