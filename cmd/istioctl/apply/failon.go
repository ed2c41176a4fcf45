package apply

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/pilot-api/pilot-api/client"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/cli"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/manifest"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/writes"
	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/schema"
)

// failOn is the severity from which problems keep an apply from writing, "" for errors.
type failOn diag.Severity

func (f *failOn) add(cmd *cobra.Command) {
	cmd.Flags().StringVar((*string)(f), "fail-on", string(diag.Error), `what keeps the command from writing: "error", or "warning" for warnings too`)
}

func (f failOn) check(dryRun string) error {
	switch {
	case f != "" && f != failOn(diag.Error) && f != failOn(diag.Warning):
		return cli.Usagef("--fail-on %q: want warning or error", string(f))
	case f == failOn(diag.Warning) && dryRun == writes.DryRunClient:
		return cli.Usagef("--fail-on warning --dry-run=client: only the server knows all warnings; use --dry-run=server")
	}
	return nil
}

// checkWarnings returns an error if there are warnings about the files, which were
// printed, or if the server would have warnings about their objects, which it prints.
// Unlike the warnings that come with the answer to a write, those of the server are
// complete: it compiles the whole mesh for them.
func checkWarnings(ctx context.Context, s *cli.Session, flags Options, list []manifest.Manifest, ofFiles diag.List) error {
	c, err := flags.Connect(client.Options{})
	if err != nil {
		return err
	}
	pruned, err := newSet(s, c, flags.set, list).prunedKeys(ctx)
	if err != nil {
		return s.Fail(ctx, err)
	}
	found, err := problemsOf(ctx, s, c, list, pruned)
	if err != nil {
		return fmt.Errorf("--fail-on warning: %s; nothing was written", s.Explain(ctx, err))
	}
	texts := make([]string, len(found))
	for i, p := range found {
		texts[i] = cli.OneLine(p.Coded())
	}
	s.WarnAll(texts)
	if len(found)+len(ofFiles) > 0 {
		return errors.New("there are warnings, and --fail-on warning is given; nothing was written")
	}
	return nil
}

// prunedKeys returns the objects that would be deleted.
func (t *set) prunedKeys(ctx context.Context) (keys []schema.Key, err error) {
	if !t.prune {
		return nil, nil
	}
	stored, err := t.stored(ctx)
	for _, one := range t.pruned(stored) {
		keys = append(keys, one.Key)
	}
	return keys, err
}
