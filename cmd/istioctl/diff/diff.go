package diff

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pilot-api/pilot-api/client"
	"github.com/pilot-api/pilot-api/cmd/istioctl/apply"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/cli"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/manifest"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/past"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/printer"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/targets"
	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/store"
)

// States gives the states of objects and of proxies, as they are, were and would be.
type States interface {
	apply.Texts
	apply.Judges
	past.Clock
	past.Historian
	Preview(ctx context.Context, text []byte, namespace string) (*client.Preview, error)
}

// Options are the values of the flags of diff.
type Options struct {
	// Connect connects to the server.
	Connect func(client.Options) (States, error)

	files   manifest.Files
	set     apply.SetFlags
	past    pastFlags
	proxies bool
}

// NewCommand returns the command diff.
func NewCommand(s *cli.Session) *cobra.Command {
	flags := Options{Connect: func(as client.Options) (States, error) { return s.ConnectWith(as) }}
	cmd := &cobra.Command{
		Use:   "diff (-f FILE | (KIND NAME | KIND/NAME) --revision REVISION [--to REVISION])",
		Short: "Show the changes that an apply would make, or past changes",
		Long: `Show the changes that 'istioctl apply' would make, as a unified diff. The server checks
each object and returns what it would store. It stores nothing. With the flags of
'istioctl apply' (--owner, --prune and so on) it shows what that apply would change,
owner labels and deleted objects included.

--proxies shows the changes in the configuration of proxies instead. The server
compiles all objects, with those of the files in place of the stored ones. Each
Envoy resource that would change is shown once, with the number of proxies for which
it would change in that way. The proxies of all replicas are included. The exit code
is 2 if no proxy is connected, or if a replica does not answer and the others show no
difference.

--revision shows the changes of an object since that revision, or from that revision
to the revision of --to. 'istioctl history' lists the revisions.

As in kubectl, the exit code is 0 if there is no difference, 1 if there is one, and 2
if the comparison was not possible.`,
		Example: `  # What would an apply of this folder change?
  istioctl diff -R -f rules/

  # What would an apply of all that an owner has change, deletions included?
  istioctl diff --prune --owner shop -R -f rules/

  # And what would proxies be told?
  istioctl diff --proxies -f reviews-v2.yaml

  # What has changed since a revision, and between two revisions?
  istioctl diff virtualservice reviews --revision 1204
  istioctl diff virtualservice reviews --revision 1204 --to 1310`,
		ValidArgsFunction: targets.CompleteName(s),
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return flags.Run(cmd.Context(), s, args) }
	flags.files.Add(cmd)
	flags.set.Add(cmd)
	flags.past.add(cmd)
	cmd.Flags().BoolVar(&flags.proxies, "proxies", false, "show the changes in the configuration of proxies")
	return cmd
}

// Run compares what the flags and arguments name, and returns an error with the exit code
// if there is a difference.
func (o Options) Run(ctx context.Context, s *cli.Session, args []string) error {
	if o.past.given() {
		return compared(o.diffPast(ctx, s, args))
	}
	if len(args) > 0 {
		return cli.Usagef("say what to compare: files with -f FILE, or an object with its past, %s --revision REVISION", strings.Join(args, " "))
	}
	if err := o.files.Required(); err != nil {
		return err
	}
	if err := o.set.Check(); err != nil {
		return err
	}
	if o.proxies && o.set.Given() {
		return cli.Usagef("--proxies compares with the objects of the files alone: leave --owner, --prune and -l out")
	}
	if o.proxies {
		return compared(o.diffProxies(ctx, s))
	}
	return compared(o.diffObjects(ctx, s))
}

// compared turns the result of a comparison into an exit code.
func compared(differs bool, err error) error {
	switch {
	case err != nil:
		return cli.ExitWith(err, exitNotCompared)
	case differs:
		return cli.ExitWith(cli.ErrReported, exitDiffers)
	}
	return nil
}

// Exit codes of diff. They are the same as kubectl's.
const (
	exitDiffers     = 1
	exitNotCompared = 2
)

// diffObjects compares the stored objects with those that an apply would store.
func (o Options) diffObjects(ctx context.Context, s *cli.Session) (differs bool, err error) {
	preconditions := []manifest.Precondition{manifest.Named("diff"), manifest.Repeated(diag.Warning)}
	if o.set.Given() {
		preconditions = o.set.Preconditions("diff")
	}
	list, err := manifest.Read(ctx, s, o.files, preconditions...)
	if err != nil {
		return false, err
	}
	warnings := apply.HoldWarnings(s, len(list) > 1, func(as client.Options) (apply.Judges, error) { return o.Connect(as) })
	c, err := o.Connect(client.Options{Warn: warnings.Tell, DryRun: true})
	if err != nil {
		return false, err
	}
	manifest.ReferencedFirst(list)
	if !o.set.Given() {
		differs, err = diffEach(ctx, s, c, list)
		warnings.Judge(ctx, list)
		return differs, err
	}
	changes, together, err := apply.Foresee(ctx, s, c, o.set, list)
	if together {
		warnings.Release()
	} else {
		warnings.Judge(ctx, list)
	}
	if err != nil {
		return false, err
	}
	return showForeseen(s, changes)
}

// diffEach compares objects one by one. A failure does not stop the next one, unless the
// server cannot be reached.
func diffEach(ctx context.Context, s *cli.Session, c apply.Texts, list []manifest.Manifest) (differs bool, err error) {
	var failures []error
	for _, m := range list {
		different, err := diffObject(ctx, s, c, m)
		if err != nil {
			failures = append(failures, fmt.Errorf("%s%s: %s", printer.Label(m.Object), printer.Where(m.Object), s.Explain(ctx, err)))
		}
		differs = differs || different
		if errors.Is(err, store.ErrUnavailable) {
			break
		}
	}
	return differs, errors.Join(failures...)
}

func diffObject(ctx context.Context, s *cli.Session, c apply.Texts, m manifest.Manifest) (bool, error) {
	before, err := c.Get(ctx, m.Key(), store.ReadOptions{})
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return false, err
	}
	after, _, err := apply.One(ctx, c, m)
	if err != nil {
		return false, err
	}
	return showForeseen(s, []apply.Foreseen{{Key: m.Key(), Before: before, After: after, Origin: m.Place().File}})
}

// showForeseen prints the differences that an apply would make.
func showForeseen(s *cli.Session, changes []apply.Foreseen) (differs bool, err error) {
	for _, change := range changes {
		old, err := comparable(change.Before)
		if err != nil {
			return differs, err
		}
		next, err := comparable(change.After)
		if err != nil {
			return differs, err
		}
		name := change.Key.Ref().String()
		different, err := showDiff(s, name+" (stored)", old, name+" ("+change.Origin+")", next)
		if err != nil {
			return differs, err
		}
		differs = differs || different
	}
	return differs, nil
}
