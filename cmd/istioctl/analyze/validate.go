package analyze

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/cli"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/manifest"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/printer"
	"github.com/pilot-api/pilot-api/diag"
)

// ValidateOptions has the flags of validate.
type ValidateOptions struct {
	files manifest.Files
}

// NewValidateCommand returns the command validate.
func NewValidateCommand(s *cli.Session) *cobra.Command {
	var flags ValidateOptions
	cmd := &cobra.Command{
		Use:   "validate -f FILE",
		Short: "Check files without a server",
		Long: `Check files, folders, URLs or standard input with the same engine as the server,
without asking a server. Each problem is printed with its place, the field, the value,
and the allowed values. Errors make the command fail; warnings do not.`,
		Example: `  # Check all rules of a folder and the folders in it
  istioctl validate -R -f rules/

  # Check the output of a template
  ./render.sh | istioctl validate -f -`,
		Args: manifest.NoArgs,
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := flags.files.Required(); err != nil {
			return err
		}
		return flags.Run(cmd.Context(), s)
	}
	flags.files.Add(cmd)
	return cmd
}

// Run checks the objects of the files, each on its own.
func (o ValidateOptions) Run(ctx context.Context, s *cli.Session) error {
	docs, err := manifest.Documents(ctx, s, o.files)
	if err != nil {
		return err
	}
	found, problems, err := manifest.Check(ctx, s, docs)
	if err != nil {
		return err
	}
	again := manifest.Repeated(diag.Warning)(found)
	problems = append(problems, again...)
	found = slices.DeleteFunc(found, func(m manifest.Manifest) bool {
		return slices.ContainsFunc(again.Errors(), func(p diag.Problem) bool { return p.Object == m.Key().Ref() && *p.Position == *m.Place() })
	})
	s.ShowProblems(problems)
	for _, m := range found {
		fmt.Fprintf(s.Stdout, "%s valid%s\n", printer.Label(m.Object), printer.Where(m.Object))
	}
	if n := len(problems.Errors()); n > 0 {
		return fmt.Errorf("%s, %s", cli.Count(n, "error"), cli.Count(len(found), "valid object"))
	}
	if len(found) == 0 {
		return o.files.NoObjects()
	}
	return nil
}
