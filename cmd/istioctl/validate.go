package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/pilot-api/pilot-api/diag"
)

func newValidate(s *session) *cobra.Command {
	var files fileFlags
	cmd := &cobra.Command{
		Use:   "validate -f FILE",
		Short: "Check files without a server",
		Long: `Check files, folders, URLs or standard input with the same engine as the server,
without asking a server. Each problem is printed with its place, the field, the value,
and the allowed values. Errors make the command fail; warnings do not.`,
		Example: `  # Check all rules of a folder and the folders in it
  istioctl validate -R -f rules/

  # Check what a template makes
  ./render.sh | istioctl validate -f -`,
		Args: noFileArgs,
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := files.required(); err != nil {
			return err
		}
		return runValidate(cmd.Context(), s, files)
	}
	files.add(cmd)
	return cmd
}

func runValidate(ctx context.Context, s *session, files fileFlags) error {
	docs, err := readDocuments(ctx, s, files)
	if err != nil {
		return err
	}
	found, problems, err := checkDocuments(ctx, s, docs)
	if err != nil {
		return err
	}
	again := repeated(diag.Warning)(found)
	problems = append(problems, again...)
	found = slices.DeleteFunc(found, func(m manifest) bool {
		return slices.ContainsFunc(again.Errors(), func(p diag.Problem) bool { return p.Object == m.Key().Ref() && *p.Position == *m.place() })
	})
	s.showProblems(problems)
	for _, m := range found {
		fmt.Fprintf(s.Stdout, "%s valid%s\n", label(m.Object), where(m.Object))
	}
	if n := len(problems.Errors()); n > 0 {
		return fmt.Errorf("%s, %s", count(n, "error"), count(len(found), "valid object"))
	}
	if len(found) == 0 {
		return files.noObjects()
	}
	return nil
}
