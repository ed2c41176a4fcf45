package get

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/pilot-api/pilot-api/client"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/cli"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/past"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/printer"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/targets"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

// Objects lists and watches the objects of the server, and returns earlier versions of
// them.
type Objects interface {
	store.Reader
	store.Historian
	cli.Pager
	GetWithStatus(ctx context.Context, key schema.Key, opts store.ReadOptions) (client.ObjectWithStatus, error)
	FollowStatuses(ctx context.Context, scope store.Scope, tell func(client.ObjectWithStatus)) error
}

// Options has the flags of get.
type Options struct {
	// Connect connects to the server, whose warnings go to warn.
	Connect func(warn func(string)) (Objects, error)

	output        string
	selector      targets.SelectorFlags
	allNamespaces bool
	watch         bool
	managedFields bool
	revision      past.Revision
	chunk         cli.ChunkSize
	rows          printer.RowOptions
}

// connectTo returns the connection of a session as its objects.
func connectTo(s *cli.Session) func(warn func(string)) (Objects, error) {
	return func(warn func(string)) (Objects, error) { return s.ConnectToRead(warn) }
}

// NewCommand returns the command get.
func NewCommand(s *cli.Session) *cobra.Command {
	flags := Options{Connect: connectTo(s)}
	cmd := &cobra.Command{
		Use:   "get (KIND [NAME...] | KIND/NAME...)",
		Short: "Show objects",
		Long: `Show objects of a namespace, or of all namespaces with -A: all objects of a kind, or
those with the given names. Separate several kinds by commas; "all" means every kind
but roles, bindings and service accounts.
A kind may be written as RouteRule, routerule(s), route-rule(s) or rr.

istioctl requests many objects in pages (--chunk-size). All objects are as of one
revision of the store, even if there are several kinds and somebody writes meanwhile.
If the server has dropped that revision before the last page, istioctl starts again.`,
		Example: `  # All route rules of the default namespace
  istioctl get routerules

  # All objects of all namespaces
  istioctl get all -A

  # Print one object as YAML
  istioctl get routerule reviews-v2 -o yaml

  # The names of the rules with a label, and of the VirtualServices that route to a host
  istioctl get rr -l team=reviews -o name
  istioctl get vs -A --field-selector destination.host=reviews -o name

  # An object as it was at a revision, even if it was deleted later
  istioctl get routerule reviews-v2 --revision 1204 -o yaml

  # Names and precedences in columns
  istioctl get rr -o custom-columns=NAME:.metadata.name,PRECEDENCE:.spec.precedence`,
		ValidArgsFunction: targets.CompleteNames(s),
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return flags.Run(cmd.Context(), s, args)
	}
	printer.AddFlag(cmd, &flags.output, printer.ReadFormats)
	targets.AddFlags(cmd, &flags.selector, &flags.allNamespaces)
	cmd.Flags().BoolVar(&flags.rows.NoHeaders, "no-headers", false, "print tables without headers")
	cmd.Flags().BoolVar(&flags.rows.ShowLabels, "show-labels", false, "show the labels as the last column of tables")
	cmd.Flags().BoolVar(&flags.managedFields, "show-managed-fields", false, "show the owners of fields, in YAML and JSON")
	cmd.Flags().Var(&flags.revision, "revision", "show objects as they were at this revision; 'istioctl history' lists revisions")
	flags.chunk.Add(cmd)
	cmd.Flags().BoolVarP(&flags.watch, "watch", "w", false, "continue with changes as they happen, in objects and in their progress at the proxies")
	return cmd
}

// Run prints the objects that the arguments name.
func (o Options) Run(ctx context.Context, s *cli.Session, args []string) error {
	if err := o.chunk.Check(); err != nil {
		return err
	}
	if o.revision > 0 && o.watch {
		return cli.Usagef("--revision and --watch: the past does not change")
	}
	if o.watch {
		return WatchOptions{
			Connect: o.Connect, output: o.output, selector: o.selector, allNamespaces: o.allNamespaces,
			plain: true, rows: o.rows, chunk: o.chunk,
		}.Run(ctx, s, args)
	}
	q, err := newQuery(s, o.output, o.selector, o.allNamespaces, args)
	if err != nil {
		return err
	}
	if o.revision > 0 && len(q.Targets) == 0 {
		return cli.Usagef("--revision wants the names of objects: the server keeps the past of each for itself")
	}
	c, err := o.Connect(s.Warn)
	if err != nil {
		return err
	}
	q.revision, q.chunk = int64(o.revision), o.chunk
	objects, err := q.run(ctx, s, c)
	if err != nil && !errors.Is(err, cli.ErrReported) {
		return s.Fail(ctx, err)
	}
	return errors.Join(showObjects(s, q, o, objects), err)
}

// run asks the server. It reports names that do not exist, and returns the rest with
// cli.ErrReported.
func (q query) run(ctx context.Context, s *cli.Session, c Objects) ([]client.ObjectWithStatus, error) {
	if len(q.Targets) > 0 {
		return q.byName(ctx, s, c)
	}
	list, err := cli.List(ctx, s, c, q.what(), q.chunk)
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

func (q query) byName(ctx context.Context, s *cli.Session, c Objects) ([]client.ObjectWithStatus, error) {
	if err := past.Reached(ctx, c, q.revision); err != nil {
		return nil, err
	}
	var objects []client.ObjectWithStatus
	var missing error
	found := map[string]bool{}
	for _, t := range q.Targets {
		o, err := q.one(ctx, c, t)
		switch {
		case errors.Is(err, store.ErrNotFound) && q.Asked == targets.EveryKind && q.revision == 0:
		case errors.Is(err, store.ErrNotFound), errors.Is(err, store.ErrExpired) && q.revision > 0:
			fmt.Fprintf(s.Stderr, "error: %s%s%s\n", targets.NotFound(t.In(q.namespace)), q.then(err), targets.Misread(t.Name))
			missing = cli.ErrReported
		case err != nil:
			return nil, err
		default:
			objects = append(objects, o)
			found[t.Name] = true
		}
	}
	if q.Asked == targets.EveryKind && q.revision == 0 {
		missing = reportNowhere(s, q, found)
	}
	return objects, missing
}

// reportNowhere reports the names that no object of any kind has.
func reportNowhere(s *cli.Session, q query, found map[string]bool) (missing error) {
	for _, t := range q.Targets {
		if !found[t.Name] {
			fmt.Fprintf(s.Stderr, "error: nothing is named %s in namespace %s%s\n", t.Name, q.namespace, targets.Misread(t.Name))
			found[t.Name], missing = true, cli.ErrReported
		}
	}
	return missing
}

// one returns an object as it is or was.
func (q query) one(ctx context.Context, c Objects, t targets.Target) (client.ObjectWithStatus, error) {
	key := t.In(q.namespace)
	if q.revision == 0 {
		return c.GetWithStatus(ctx, key, store.ReadOptions{})
	}
	o, err := store.At(ctx, c, key, q.revision)
	return client.ObjectWithStatus{Object: o}, err
}

// then explains why an object was not found in the past.
func (q query) then(err error) string {
	if q.revision == 0 {
		return ""
	}
	return fmt.Sprintf(" at revision %d: %s", q.revision, cli.Reason(err))
}

// showObjects prints the objects found. An empty result is not an error.
func showObjects(s *cli.Session, q query, flags Options, objects []client.ObjectWithStatus) error {
	alone := len(q.Targets) == 1
	switch {
	case len(objects) == 0 && len(q.Targets) > 0:
		return nil // Each missing object was reported.
	case len(objects) == 0 && printer.IsTable(flags.output):
		fmt.Fprintln(s.Stderr, q.Nothing(q.namespace))
		return nil
	case printer.IsTable(flags.output):
		return showTables(s, q, flags, objects)
	}
	p, err := printer.New(flags.output)
	if err != nil {
		return err
	}
	if omit, ok := p.(*printers.OmitManagedFieldsPrinter); ok && flags.managedFields {
		p = omit.Delegate
	}
	return printer.PrintObjects(s.Stdout, p, objects, alone)
}

// showTables prints one table per kind.
func showTables(s *cli.Session, q query, flags Options, objects []client.ObjectWithStatus) error {
	style := printer.Style{
		Wide: flags.output == printer.Wide, Namespaces: q.namespace == "", Kinds: len(q.Kinds) > 1,
		RowOptions: flags.rows,
	}
	printed := false
	for _, kind := range q.Kinds {
		var rows []client.ObjectWithStatus
		for _, o := range objects {
			if o.Object.Kind == kind {
				rows = append(rows, o)
			}
		}
		if len(rows) == 0 {
			continue
		}
		if printed {
			fmt.Fprintln(s.Stdout)
		}
		printed = true
		if err := printer.NewTable(s.Stdout, kind, style).PrintStated(rows); err != nil {
			return err
		}
	}
	return nil
}
