package analyze

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/pilot-api/pilot-api/client"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/cli"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/printer"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/targets"
	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/internal/terminal"
	"github.com/pilot-api/pilot-api/schema"
)

var problemFormats = []string{printer.Table, printer.YAML, printer.JSON}

// Finder finds objects and their problems.
type Finder interface {
	cli.Pager
	Reporter
}

// Reporter reports the problems of the server's objects.
type Reporter interface {
	Problems(ctx context.Context, opts client.ProblemsOptions) (*client.Problems, error)
}

// ProblemsOptions has the flags of problems.
type ProblemsOptions struct {
	// Connect connects to the server, whose warnings go to warn.
	Connect func(warn func(string)) (Finder, error)

	output string
}

// NewProblemsCommand returns the command problems.
func NewProblemsCommand(s *cli.Session) *cobra.Command {
	flags := ProblemsOptions{Connect: func(warn func(string)) (Finder, error) { return s.ConnectToRead(warn) }}
	cmd := &cobra.Command{
		Use:   "problems [KIND [NAME...] | KIND/NAME...]",
		Short: "Show problems of objects",
		Long: `Show the parts of objects that the configuration of proxies cannot follow: a version
without instances, a rule that is never used, a field that an Envoy does not support.
The server finds them when it compiles all objects together, a moment after a write.
The answer includes everything that was written before the request. If that is not
compiled within 10 s, the exit code is 1. -o yaml includes the compiled revision.

Without -n, istioctl shows the problems of all namespaces. Problems are not a failure:
the exit code is 0. It is 1 for an object that does not exist.`,
		Example: `  # All problems of all namespaces
  istioctl problems

  # Why does this rule not do what it says?
  istioctl problems routerule reviews-v2`,
		ValidArgsFunction: targets.CompleteNames(s),
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return flags.Run(cmd.Context(), s, args)
	}
	printer.AddFlag(cmd, &flags.output, problemFormats)
	return cmd
}

// Run prints the problems of the objects that the arguments name, or of all objects.
func (o ProblemsOptions) Run(ctx context.Context, s *cli.Session, args []string) error {
	if err := printer.Check(o.output, problemFormats); err != nil {
		return err
	}
	about, err := problemFilter(s, args)
	if err != nil {
		return err
	}
	c, err := o.Connect(s.Warn)
	if err != nil {
		return err
	}
	found, err := c.Problems(ctx, client.ProblemsOptions{Namespace: givenNamespace(s)})
	if err != nil {
		return s.Fail(ctx, err)
	}
	found.Problems = slices.DeleteFunc(found.Problems, func(p diag.Problem) bool { return !about(p.Object) })
	missing := reportMissing(ctx, s, c, args, found.Problems)
	if missing != nil && !errors.Is(missing, cli.ErrReported) {
		return s.Fail(ctx, missing)
	}
	if missing != nil && len(found.Problems) == 0 {
		return missing // An empty list would suggest that the missing object exists.
	}
	return errors.Join(showFound(s, found, o.output), missing)
}

// givenNamespace returns the namespace that was given, "" for all.
func givenNamespace(s *cli.Session) string {
	if s.NamespaceGiven {
		return s.Namespace
	}
	return ""
}

// reportMissing reports named objects that do not exist. An object with a problem exists.
func reportMissing(ctx context.Context, s *cli.Session, c cli.Pager, args []string, found diag.List) error {
	if len(args) == 0 {
		return nil
	}
	sel, err := targets.Parse(args)
	if err != nil {
		return err
	}
	var missing error
	for _, t := range sel.Targets {
		if slices.ContainsFunc(found, func(p diag.Problem) bool { return p.Object.Kind == t.Kind.Kind && p.Object.Name == t.Name }) {
			continue
		}
		there, err := exists(ctx, s, c, t)
		if err != nil {
			return err
		}
		if !there {
			text := fmt.Sprintf("%s/%s not found in any namespace", t.Kind.Singular, t.Name)
			if s.NamespaceGiven || t.Kind.Cluster {
				text = targets.NotFound(t.In(s.Namespace))
			}
			fmt.Fprintf(s.Stderr, "error: %s\n", text)
			missing = cli.ErrReported
		}
	}
	return missing
}

// exists looks in all namespaces, or in the one that was given.
func exists(ctx context.Context, s *cli.Session, c cli.Pager, t targets.Target) (bool, error) {
	named := client.Selection{Kinds: []*schema.Kind{t.Kind}, Fields: fields.OneTermEqualSelector(schema.FieldName, t.Name).String()}
	if s.NamespaceGiven {
		named.Namespace = s.Namespace
	}
	list, err := cli.List(ctx, s, c, named, cli.PageSize)
	return err == nil && len(list.Items) > 0, err
}

// problemFilter returns a filter for the objects that the arguments name.
func problemFilter(s *cli.Session, args []string) (func(diag.Ref) bool, error) {
	here := func(r diag.Ref) bool { return !s.NamespaceGiven || r.Namespace == s.Namespace }
	if len(args) == 0 {
		return here, nil
	}
	sel, err := targets.Parse(args)
	return func(r diag.Ref) bool {
		return here(r) && slices.ContainsFunc(sel.Kinds, func(k *schema.Kind) bool { return k.Kind == r.Kind }) &&
			(len(sel.Targets) == 0 || slices.ContainsFunc(sel.Targets, func(t targets.Target) bool {
				return t.Kind.Kind == r.Kind && t.Name == r.Name
			}))
	}, err
}

// at returns the text for a revision, if there is one.
func at(revision int64) string {
	if revision == 0 {
		return ""
	}
	return fmt.Sprintf(" at revision %d", revision)
}

// subject returns the object of a problem, or the position in a text without objects.
func subject(p diag.Problem) string {
	if p.Object == (diag.Ref{}) && p.Position != nil {
		return terminal.Line(p.Position.String())
	}
	return p.Object.String()
}

func showFound(s *cli.Session, found *client.Problems, output string) error {
	if !printer.IsTable(output) {
		return printer.WriteDocument(s.Stdout, output, found)
	}
	if len(found.Problems) == 0 {
		fmt.Fprintf(s.Stderr, "No problems found%s%s.\n", at(found.Revision), where(found))
		return nil
	}
	tab := printers.GetNewTabWriter(s.Stdout)
	fmt.Fprintln(tab, "SEVERITY\tCODE\tOBJECT\tFIELD\tPROBLEM")
	for _, p := range found.Problems {
		what := diag.Problem{Message: p.Message, Value: p.Value}
		fmt.Fprintf(tab, "%s\t%s\t%s\t%s\t%s\n", p.Severity, p.Code, subject(p), p.Field, what)
	}
	if err := tab.Flush(); err != nil || !found.Limited {
		return err
	}
	fmt.Fprintf(s.Stderr, "These are the problems%s.\n", where(found))
	return nil
}

// where returns where problems were looked for, if that is not everywhere.
func where(found *client.Problems) string {
	if found.Limited {
		return " in the namespaces that you may see; -n NAMESPACE says whether you may see one"
	}
	return ""
}
