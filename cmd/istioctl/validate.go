package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/pilot-api/pilot-api/diag"
)

func NewValidateCommand(s *Session) *cobra.Command {
	var files Files
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
		Args: NoArgs,
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := files.Required(); err != nil {
			return err
		}
		return runValidate(cmd.Context(), s, files)
	}
	files.Add(cmd)
	return cmd
}

func runValidate(ctx context.Context, s *Session, files Files) error {
	docs, err := Documents(ctx, s, files)
	if err != nil {
		return err
	}
	found, problems, err := CheckDocuments(ctx, s, docs)
	if err != nil {
		return err
	}
	again := Repeated(diag.Warning)(found)
	problems = append(problems, again...)
	found = slices.DeleteFunc(found, func(m Manifest) bool {
		return slices.ContainsFunc(again.Errors(), func(p diag.Problem) bool { return p.Object == m.Key().Ref() && *p.Position == *m.Place() })
	})
	s.ShowProblems(problems)
	for _, m := range found {
		fmt.Fprintf(s.Stdout, "%s valid%s\n", Label(m.Object), Where(m.Object))
	}
	if n := len(problems.Errors()); n > 0 {
		return fmt.Errorf("%s, %s", Count(n, "error"), Count(len(found), "valid object"))
	}
	if len(found) == 0 {
		return files.NoObjects()
	}
	return nil
}
