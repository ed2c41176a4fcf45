package apply

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/cli"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/manifest"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/writes"
	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

// NewCreateCommand returns the command create.
func NewCreateCommand(s *cli.Session) *cobra.Command {
	return create.command(s, &cobra.Command{
		Use:   "create -f FILE",
		Short: "Create objects from files",
		Long: `Create objects from files, folders, URLs or standard input. istioctl reads and checks
all of them before it sends the first. ServiceEntries and WorkloadEntries are created
first. Each object is sent as it is written. If an object already exists, that is an
error, and istioctl still creates the others.`,
		Example: `  # Create the objects of a file, and of all files in a folder
  istioctl create -f reviews-v2.yaml -f rules/

  # Create in another namespace, from standard input
  cat reviews-v2.yaml | istioctl create -n books -f -

  # See what would be created
  istioctl create -f rules/ --dry-run=client`,
	})
}

var create = fileVerb{[]manifest.Precondition{manifest.Versioned, manifest.Repeated(diag.Error)}, writes.Created, createOne, false}

func createOne(ctx context.Context, c Texts, m manifest.Manifest) (*schema.Object, writes.Outcome, error) {
	o, err := c.CreateText(ctx, m.Text())
	if errors.Is(err, store.ErrExists) {
		err = &store.Error{Kind: store.ErrExists, Detail: "already exists; use 'istioctl replace' or 'istioctl apply' to change it"}
	}
	return o, writes.Created, err
}
