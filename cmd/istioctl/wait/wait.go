package wait

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/client"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/cli"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/proxies"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/targets"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

// waitGoal is a condition that a wait can be for.
type waitGoal struct{ condition, word string }

var (
	waitProgrammed = waitGoal{schema.ConditionProgrammed, "programmed"}
	waitGoals      = map[string]waitGoal{
		"programmed":   waitProgrammed,
		"accepted":     {schema.ConditionAccepted, "accepted"},
		"resolvedrefs": {schema.ConditionResolved, "resolved"},
	}
)

const (
	// waitTimeout is the default limit of a wait.
	waitTimeout = time.Minute
	// waitPace is the time between two looks.
	waitPace = 200 * time.Millisecond
	// mostMissing is the maximum number of proxies that are named.
	mostMissing = 10
	// missingTimeout bounds the request for their names after the time is over.
	missingTimeout = 5 * time.Second
)

// Statuses returns the status of objects, and the proxies that they concern.
type Statuses interface {
	GetWithStatus(ctx context.Context, key schema.Key, opts store.ReadOptions) (client.ObjectWithStatus, error)
	GetWithFreshStatus(ctx context.Context, key schema.Key, opts store.ReadOptions) (client.ObjectWithStatus, error)
	AllProxiesOf(ctx context.Context, key schema.Key) ([]client.Proxy, error)
}

// Options are the values of the flags of wait.
type Options struct {
	// Connect connects to the server, whose warnings go to warn.
	Connect func(warn func(string)) (Statuses, error)

	goal        string
	timeout     time.Duration
	requireLost bool
}

// NewCommand returns the command wait.
func NewCommand(s *cli.Session) *cobra.Command {
	flags := Options{Connect: func(warn func(string)) (Statuses, error) { return s.Connect(warn) }}
	cmd := &cobra.Command{
		Use:   "wait --for=(programmed | accepted | resolvedrefs) (KIND NAME... | KIND/NAME...)",
		Short: "Wait until the proxies run an object",
		Long: `Wait for a condition of objects:

  programmed    every connected proxy that the object affects runs the present
                version, or a later one. A proxy on a stream has acknowledged it. A
                proxy that polls in REST v3 has confirmed it in its next polls,
                endpoints included. A proxy that polls in v1 has fetched it, and
                cannot say whether it uses it, so it is counted separately
  accepted      the server has found that everything in the object is honoured
  resolvedrefs  everything to which the object refers exists

An object that is not honoured as written is neither accepted nor programmed. The
command waits up to 30 seconds for proxies that were connected before a start of the
server, or that lost their connection without ending it. After that it does not count
them, and names them. With --require-lost it waits until they are back, or until the
server no longer remembers them (pilot-api --keep-disconnected).

The wait fails at once if a proxy refuses the configuration, and says which proxy and
why. It also fails at once if the object cannot be honoured or is being deleted.
References may appear later, so istioctl keeps waiting for them. At the timeout it lists
the proxies or references that are missing. The exit code is 1 in all of these cases.`,
		Example: `  # Wait until every proxy runs the new rule
  istioctl wait --for=programmed virtualservice reviews

  # Does everything exist that the object refers to?
  istioctl wait --for=resolvedrefs virtualservice reviews --timeout 1s

  # Wait for two objects, for at most ten seconds
  istioctl wait --for=programmed vs/reviews dr/reviews --timeout 10s

  # Fail if a proxy that lost its connection may still run the old rule
  istioctl wait --for=programmed --require-lost vs/reviews`,
		Args:              cli.ArgsOr(cobra.MinimumNArgs(1), "say which object: istioctl wait --for=programmed KIND NAME"),
		ValidArgsFunction: targets.CompleteNames(s),
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return flags.Run(cmd.Context(), s, args)
	}
	cmd.Flags().StringVar(&flags.goal, "for", "programmed", "what to wait for: programmed, accepted or resolvedrefs")
	cmd.Flags().DurationVar(&flags.timeout, "timeout", waitTimeout, "give up after this time")
	cmd.Flags().BoolVar(&flags.requireLost, "require-lost", false, "also wait for proxies that lost their connection, however long ago")
	// The flag exists, so this cannot fail.
	_ = cmd.RegisterFlagCompletionFunc("for", cobra.FixedCompletions([]string{"programmed", "accepted", "resolvedrefs"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// Run waits for the objects that the arguments name.
func (o Options) Run(ctx context.Context, s *cli.Session, args []string) error {
	meant, ok := waitGoals[strings.TrimPrefix(strings.ToLower(o.goal), "condition=")] // As in kubectl.
	switch {
	case !ok:
		return cli.Usagef("--for=%s: want programmed, accepted or resolvedrefs", o.goal)
	case o.timeout <= 0:
		return cli.Usagef("--timeout %s: must be more than 0", o.timeout)
	case o.requireLost && meant != waitProgrammed:
		return cli.Usagef("--require-lost: only a wait --for=programmed is for proxies")
	}
	sel, err := targets.Parse(args)
	if err != nil {
		return err
	}
	if len(sel.Targets) == 0 {
		return cli.Usagef("say which object: istioctl wait --for=%s %s NAME", o.goal, args[0])
	}
	c, err := o.Connect(s.Warn)
	if err != nil {
		return err
	}
	w := waiting{Session: s, client: c, goal: meant, timeout: o.timeout, requireLost: o.requireLost, out: s.Stdout, unresolved: s.Warn}
	for _, t := range sel.Targets {
		w.keys = append(w.keys, t.In(s.Namespace))
	}
	return w.run(ctx)
}

// Programmed waits until the proxies run the written objects. Its messages stay out of
// output for programs.
func Programmed(ctx context.Context, s *cli.Session, c Statuses, keys []schema.Key) error {
	w := waiting{Session: s, client: c, goal: waitProgrammed, timeout: cmp.Or(s.Timeout, waitTimeout), out: s.Stderr, unresolved: func(string) {}, keys: keys}
	return w.run(ctx)
}

// waiting is a wait until some objects have a condition.
type waiting struct {
	*cli.Session
	client  Statuses
	goal    waitGoal
	timeout time.Duration
	keys    []schema.Key
	// requireLost makes the wait last until no proxy is lost that the objects concern.
	requireLost bool
	out         io.Writer
	// unresolved warns of names without an object. A write has already reported them.
	unresolved func(string)
	absence    absence
}

// run waits for all objects. The first that cannot reach the goal ends it.
func (w *waiting) run(ctx context.Context) error {
	timed, cancel := context.WithTimeout(ctx, w.timeout)
	defer cancel()
	for _, key := range w.keys {
		if err := w.one(ctx, timed, key); err != nil {
			return err
		}
	}
	return nil
}

func (w *waiting) one(ctx, timed context.Context, key schema.Key) error {
	name := strings.ToLower(key.Kind) + "/" + key.Name
	tick := time.NewTicker(waitPace)
	defer tick.Stop()
	var last client.ObjectWithStatus
	var silence error // error since the last answer
	w.absence.seen = 0
	// A proxy that refused the object and has left since does not count. The first answer
	// follows from all earlier writes. If they are not compiled in time, the error is
	// ErrFuture.
	look := w.client.GetWithFreshStatus
	for {
		now, err := look(timed, key, store.ReadOptions{})
		if timed.Err() == nil {
			silence = err
		}
		switch {
		case errors.Is(err, store.ErrNotFound) && last.Object != nil:
			return fmt.Errorf("%s was deleted meanwhile", name)
		case errors.Is(err, store.ErrNotFound):
			return errors.New(targets.NotFound(key) + targets.Misread(key.Name))
		case err != nil && last.Object == nil && timed.Err() == nil && !errors.Is(err, store.ErrFuture):
			return w.Fail(ctx, err)
		case err != nil:
			w.absence.amiss = true
		default:
			last, look = now, w.client.GetWithStatus
			if done, err := w.judge(timed, name, now); done {
				if err == nil && w.goal == waitProgrammed {
					w.nameLost(timed, now)
				}
				return err
			}
		}
		select {
		case <-timed.Done():
			return w.late(ctx, name, last, silence)
		case <-tick.C:
		}
	}
}

// judge reports whether the wait for an object is over and, if it failed, why.
func (w *waiting) judge(ctx context.Context, name string, o client.ObjectWithStatus) (done bool, err error) {
	status, err := o.Status()
	switch {
	case err != nil:
		return true, fmt.Errorf("status of %s: %w", name, err)
	case status == nil:
		return true, fmt.Errorf("%s has no status: the server has no proxies", name)
	}
	c := status.Condition(w.goal.condition)
	away := w.absence.away(status.Programmed.Proxies)
	refused := c.Reason == schema.ReasonRejected || w.goal.condition != schema.ConditionResolved && isUnhonoured(status)
	switch {
	case o.Meta.DeletionTimestamp != nil:
		return true, fmt.Errorf("%s is being deleted: it stays until its finalizers are gone", name)
	case refused:
		if c.Status == metav1.ConditionTrue { // An older server reports it this way.
			c = status.Condition(schema.ConditionAccepted)
		}
		why := cli.OneLine(c.Message)
		return true, fmt.Errorf("%s is not %s: %s%s", name, w.goal.word, why, alsoMissing(status, why))
	case c.Status != metav1.ConditionTrue:
		return false, nil
	case c.Type != schema.ConditionProgrammed:
		fmt.Fprintf(w.out, "%s %s\n", name, w.goal.word)
	case away, w.requireLost && w.mayBeLost(ctx, o):
		return false, nil
	case status.Programmed.Proxies == 0:
		fmt.Fprintf(w.out, "%s programmed: the object concerns no connected proxy\n", name)
	default:
		fmt.Fprintf(w.out, "%s programmed: %s\n", name, status.Programmed.Summary())
	}
	if refs := status.Condition(schema.ConditionResolved); refs.Status == metav1.ConditionFalse {
		w.unresolved(fmt.Sprintf("%s names what is not there: %s", name, cli.OneLine(refs.Message)))
	}
	return true, nil
}

// isUnhonoured reports whether a part of an object is not honoured for a reason other
// than names without an object.
func isUnhonoured(status *schema.Status) bool {
	accepted, resolved := status.Condition(schema.ConditionAccepted), status.Condition(schema.ConditionResolved)
	// The server prefers other reasons to missing references.
	ofReference := resolved.Status == metav1.ConditionFalse && accepted.Reason == resolved.Reason && accepted.Message == resolved.Message
	return accepted.Status == metav1.ConditionFalse && !ofReference
}

// alsoMissing returns what an object names that is not there, unless a text tells it already.
func alsoMissing(status *schema.Status, told string) string {
	c := status.Condition(schema.ConditionResolved)
	message := cli.OneLine(c.Message)
	if c.Status != metav1.ConditionFalse || strings.Contains(told, message) {
		return ""
	}
	return "; it also names what is not there: " + message
}

// late returns the error for the end of the time, with the missing proxies, or with the
// reason why the server no longer answers.
func (w *waiting) late(ctx context.Context, name string, last client.ObjectWithStatus, silence error) error {
	if errors.Is(context.Cause(ctx), context.Canceled) {
		return w.Fail(ctx, ctx.Err())
	}
	// The time may be that of the whole command. Ask for the missing proxies anyway.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), missingTimeout)
	defer cancel()
	if last.Object == nil {
		return fmt.Errorf("no answer from %s after --timeout %s", w.Server, w.timeout)
	}
	text := fmt.Sprintf("%s is not %s after --timeout %s", name, w.goal.word, w.timeout)
	if status, err := last.Status(); err == nil && status != nil {
		if c := status.Condition(w.goal.condition); c.Message != "" {
			text += ": " + cli.OneLine(c.Message)
		}
		text += alsoMissing(status, text)
	}
	if n := w.absence.missing; n > 0 && w.goal == waitProgrammed {
		text += fmt.Sprintf("; of those that were connected before, %d may still come back", n)
	}
	if silence != nil {
		return fmt.Errorf("%s (as it was told last: there was no answer since then: %s)", text, w.Explain(ctx, silence))
	}
	if w.goal == waitProgrammed {
		for _, line := range w.missing(ctx, last) {
			text += "\n  " + line
		}
	}
	return errors.New(text)
}

// nameLost names the proxies that do not count because they lost their connection.
func (w *waiting) nameLost(ctx context.Context, o client.ObjectWithStatus) {
	all, err := w.lost(ctx, o)
	if err != nil {
		return // The lost proxies are additional information.
	}
	for i, p := range all {
		if i == mostMissing {
			fmt.Fprintf(w.out, "  … and %d more that lost the connection\n", len(all)-i)
			return
		}
		fmt.Fprintf(w.out, "  not counted: %s %s\n", p.Node, proxies.Doing(p))
	}
}

// lost returns the proxies of an object that lost their connection and are not back.
func (w *waiting) lost(ctx context.Context, o client.ObjectWithStatus) ([]client.Proxy, error) {
	all, err := w.client.AllProxiesOf(ctx, o.Key())
	return slices.DeleteFunc(all, func(p client.Proxy) bool { return !p.Lost }), err
}

// mayBeLost reports whether a proxy of an object is lost, or whether that is not known.
func (w *waiting) mayBeLost(ctx context.Context, o client.ObjectWithStatus) bool {
	all, err := w.lost(ctx, o)
	return err != nil || len(all) > 0
}

// missing names the proxies that do not run an object.
func (w *waiting) missing(ctx context.Context, o client.ObjectWithStatus) []string {
	all, err := w.client.AllProxiesOf(ctx, o.Key())
	if err != nil {
		return []string{"which proxies are missing is not known: " + w.Explain(ctx, err)}
	}
	all = slices.DeleteFunc(all, func(p client.Proxy) bool {
		return p.State == client.Disconnected && !p.Lost || p.State == "" && max(p.Revision, p.FetchedRevision) >= o.Revision()
	})
	var lines []string
	for i, p := range all {
		if i == mostMissing {
			return append(lines, fmt.Sprintf("… and %d more", len(all)-i))
		}
		lines = append(lines, p.Node+" "+proxies.Doing(p))
	}
	return lines
}
