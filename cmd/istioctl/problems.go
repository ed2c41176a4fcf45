package main

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/pilot-api/pilot-api/client"
	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/schema"
)

var problemFormats = []string{formatTable, formatYAML, formatJSON}

func newProblems(s *session) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "problems [KIND [NAME...] | KIND/NAME...]",
		Short: "Show what the objects ask for and cannot have",
		Long: `Show what the objects ask for and the configuration of the proxies cannot give:
a version that no instance has, a rule that is never used, a field that an Envoy
cannot follow. The server finds this when it compiles all objects together, a
moment after one was written. The answer waits until everything written before
is compiled; if that is not done within 10 s, the exit code is 1. -o yaml tells
the revision that was compiled.

Objects of all namespaces are looked at, or of the one that -n names. Problems
are no failure: the exit code is 0.`,
		Example: `  # Everything that is wrong
  istioctl problems

  # Why does this rule not do what it says?
  istioctl problems routerule reviews-v2`,
		ValidArgsFunction: s.completeNames,
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return runProblems(cmd.Context(), s, output, args)
	}
	addOutput(cmd, &output, problemFormats)
	return cmd
}

func runProblems(ctx context.Context, s *session, output string, args []string) error {
	if err := checkOutput(output, problemFormats); err != nil {
		return err
	}
	about, err := s.problemFilter(args)
	if err != nil {
		return err
	}
	c, err := s.connect(s.warn)
	if err != nil {
		return err
	}
	found, err := c.Problems(ctx)
	if err != nil {
		return s.fail(ctx, err)
	}
	found.Problems = slices.DeleteFunc(found.Problems, func(p diag.Problem) bool { return !about(p.Object) })
	return s.showFound(found, output)
}

// problemFilter tells the objects that the arguments mean.
func (s *session) problemFilter(args []string) (func(diag.Ref) bool, error) {
	here := func(r diag.Ref) bool { return !s.namespaceGiven || r.Namespace == s.namespace }
	if len(args) == 0 {
		return here, nil
	}
	sel, err := parseSelection(args)
	return func(r diag.Ref) bool {
		return here(r) && slices.ContainsFunc(sel.kinds, func(k *schema.Kind) bool { return k.Kind == r.Kind }) &&
			(len(sel.targets) == 0 || slices.ContainsFunc(sel.targets, func(t target) bool {
				return t.kind.Kind == r.Kind && t.name == r.Name
			}))
	}, err
}

func (s *session) showFound(found *client.Problems, output string) error {
	if !isTable(output) {
		text, err := encode(output, found)
		if err == nil {
			_, err = io.WriteString(s.Stdout, text)
		}
		return err
	}
	if len(found.Problems) == 0 {
		fmt.Fprintf(s.Stderr, "No problems found at revision %d.\n", found.Revision)
		return nil
	}
	tab := printers.GetNewTabWriter(s.Stdout)
	fmt.Fprintln(tab, "SEVERITY\tOBJECT\tFIELD\tPROBLEM")
	for _, p := range found.Problems {
		what := diag.Problem{Message: p.Message, Value: p.Value}
		fmt.Fprintf(tab, "%s\t%s\t%s\t%s\n", p.Severity, p.Object, p.Field, what)
	}
	return tab.Flush()
}
