package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/pilot-api/pilot-api/client"
	"github.com/pilot-api/pilot-api/store"
)

type getFlags struct {
	output        string
	selector      selectorFlags
	allNamespaces bool
	watch         bool
	managedFields bool
	revision      revisionFlag
	chunk         chunkSize
	rows          rowFlags
}

func newGet(s *session) *cobra.Command {
	var flags getFlags
	cmd := &cobra.Command{
		Use:   "get (KIND [NAME...] | KIND/NAME...)",
		Short: "Show objects",
		Long: `Show objects of a namespace, or of all namespaces with -A: all objects of a kind, or
those with the given names. Separate several kinds by commas; "all" means every kind.
A kind may be written as RouteRule, routerule(s), route-rule(s) or rr.

istioctl requests many objects in pages (--chunk-size). All objects are as of one
revision of the store, even if there are several kinds and somebody writes meanwhile.
If the server has dropped that revision before the last page, istioctl starts again.`,
		Example: `  # All route rules of the default namespace
  istioctl get routerules

  # Everything everywhere
  istioctl get all -A

  # One object as its file
  istioctl get routerule reviews-v2 -o yaml

  # The names of all rules with a label, and of the services that route to a host
  istioctl get rr -l team=reviews -o name
  istioctl get vs -A --field-selector destination.host=reviews -o name

  # One object as it was, also if it was deleted since
  istioctl get routerule reviews-v2 --revision 1204 -o yaml

  # Precedences by name
  istioctl get rr -o custom-columns=NAME:.metadata.name,PRECEDENCE:.spec.precedence`,
		ValidArgsFunction: completeNames(s),
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return runGet(cmd.Context(), s, flags, args)
	}
	addOutput(cmd, &flags.output, readFormats)
	addSelection(cmd, &flags.selector, &flags.allNamespaces)
	cmd.Flags().BoolVar(&flags.rows.noHeaders, "no-headers", false, "print tables without headers")
	cmd.Flags().BoolVar(&flags.rows.showLabels, "show-labels", false, "show the labels as the last column of tables")
	cmd.Flags().BoolVar(&flags.managedFields, "show-managed-fields", false, "show the owners of fields, in YAML and JSON")
	cmd.Flags().Var(&flags.revision, "revision", "show objects as they were at this revision; 'istioctl history' lists revisions")
	flags.chunk.add(cmd)
	cmd.Flags().BoolVarP(&flags.watch, "watch", "w", false, "continue with changes as they happen")
	return cmd
}

func runGet(ctx context.Context, s *session, flags getFlags, args []string) error {
	if err := flags.chunk.check(); err != nil {
		return err
	}
	if flags.revision > 0 && flags.watch {
		return usagef("--revision and --watch: the past does not change")
	}
	if flags.watch {
		return runWatch(ctx, s, watchFlags{
			output: flags.output, selector: flags.selector, allNamespaces: flags.allNamespaces,
			plain: true, rows: flags.rows, chunk: flags.chunk,
		}, args)
	}
	q, err := newQuery(s, flags.output, flags.selector, flags.allNamespaces, args)
	if err != nil {
		return err
	}
	if flags.revision > 0 && len(q.targets) == 0 {
		return usagef("--revision wants the names of objects: the server keeps the past of each for itself")
	}
	c, err := s.connect(s.warn)
	if err != nil {
		return err
	}
	q.revision, q.chunk = int64(flags.revision), flags.chunk
	objects, err := q.run(ctx, s, c)
	if err != nil && !errors.Is(err, errReported) {
		return s.fail(ctx, err)
	}
	return errors.Join(showObjects(s, q, flags, objects), err)
}

// run asks the server. It reports names that do not exist, and returns the rest with
// errReported.
func (q query) run(ctx context.Context, s *session, c *client.Client) ([]client.ObjectWithStatus, error) {
	if len(q.targets) > 0 {
		return q.byName(ctx, s, c)
	}
	list, err := listAll(ctx, s, c, q.what(), q.chunk)
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

func (q query) byName(ctx context.Context, s *session, c *client.Client) ([]client.ObjectWithStatus, error) {
	if err := reached(ctx, c, q.revision); err != nil {
		return nil, err
	}
	var objects []client.ObjectWithStatus
	var missing error
	found := map[string]bool{}
	for _, t := range q.targets {
		o, err := q.one(ctx, c, t)
		switch {
		case errors.Is(err, store.ErrNotFound) && q.asked == everyKind && q.revision == 0:
		case errors.Is(err, store.ErrNotFound), errors.Is(err, store.ErrExpired) && q.revision > 0:
			fmt.Fprintf(s.Stderr, "error: %s/%s not found in namespace %s%s%s\n", t.kind.Singular, t.name, q.namespace, q.then(err), misread(t.name))
			missing = errReported
		case err != nil:
			return nil, err
		default:
			objects = append(objects, o)
			found[t.name] = true
		}
	}
	if q.asked == everyKind && q.revision == 0 {
		missing = reportNowhere(s, q, found)
	}
	return objects, missing
}

// reportNowhere reports the names that no object of any kind has.
func reportNowhere(s *session, q query, found map[string]bool) (missing error) {
	for _, t := range q.targets {
		if !found[t.name] {
			fmt.Fprintf(s.Stderr, "error: nothing is named %s in namespace %s%s\n", t.name, q.namespace, misread(t.name))
			found[t.name], missing = true, errReported
		}
	}
	return missing
}

// one returns an object as it is or was.
func (q query) one(ctx context.Context, c *client.Client, t target) (client.ObjectWithStatus, error) {
	key := t.in(q.namespace)
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
	return fmt.Sprintf(" at revision %d: %s", q.revision, reason(err))
}

// showObjects prints the objects found. An empty result is not an error.
func showObjects(s *session, q query, flags getFlags, objects []client.ObjectWithStatus) error {
	alone := len(q.targets) == 1
	switch {
	case len(objects) == 0 && len(q.targets) > 0:
		return nil // Each missing object was reported.
	case len(objects) == 0 && isTable(flags.output):
		fmt.Fprintln(s.Stderr, q.nothing(q.namespace))
		return nil
	case isTable(flags.output):
		return showTables(s, q, flags, objects)
	}
	p, err := objectPrinter(flags.output)
	if err != nil {
		return err
	}
	if omit, ok := p.(*printers.OmitManagedFieldsPrinter); ok && flags.managedFields {
		p = omit.Delegate
	}
	return printObjects(s.Stdout, p, objects, alone)
}

// showTables prints one table per kind.
func showTables(s *session, q query, flags getFlags, objects []client.ObjectWithStatus) error {
	style := tableStyle{
		wide: flags.output == formatWide, namespaces: q.namespace == "", kinds: len(q.kinds) > 1,
		rowFlags: flags.rows,
	}
	printed := false
	for _, kind := range q.kinds {
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
		if err := newTable(s.Stdout, kind, style).stated(rows); err != nil {
			return err
		}
	}
	return nil
}
