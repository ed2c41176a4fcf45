package apply

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/cli"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/manifest"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/writes"
	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

// NewReplaceCommand returns the command replace.
func NewReplaceCommand(s *cli.Session) *cobra.Command {
	return replace.command(s, &cobra.Command{
		Use:   "replace -f FILE",
		Short: "Replace stored objects by those in files",
		Long: `Replace stored objects by those of files, folders, URLs or standard input. istioctl
reads and checks all of them before it sends the first. A file with a
metadata.resourceVersion replaces only that version; without one it replaces any
version. If an object does not exist, that is an error.`,
		Example: `  # Replace the objects of a file
  istioctl replace -f reviews-v2.yaml

  # Change an object, but only if nobody else changes it meanwhile
  istioctl get routerule reviews -o yaml > reviews.yaml
  vi reviews.yaml
  istioctl replace -f reviews.yaml`,
	})
}

var replace = fileVerb{[]manifest.Precondition{manifest.Named("replace"), manifest.Repeated(diag.Warning)}, writes.Replaced, replaceOne, false}

func replaceOne(ctx context.Context, c Texts, m manifest.Manifest) (*schema.Object, writes.Outcome, error) {
	before, err := c.Get(ctx, m.Key(), store.ReadOptions{})
	if err != nil {
		return nil, writes.Failed, replaceHint(m, err)
	}
	next, err := keepOwner(m, before)
	if err != nil {
		return nil, writes.Failed, err
	}
	o, err := c.UpdateText(ctx, next.Text())
	return o, writes.Replaced, replaceHint(m, err)
}

func replaceHint(m manifest.Manifest, err error) error {
	switch {
	case errors.Is(err, store.ErrNotFound) && m.Meta.ResourceVersion != "":
		return &store.Error{Kind: store.ErrNotFound, Detail: fmt.Sprintf(
			"does not exist any more; leave metadata.resourceVersion out of %s and use 'istioctl apply' to make it anew", m.Place())}
	case errors.Is(err, store.ErrNotFound):
		return &store.Error{Kind: store.ErrNotFound, Detail: "does not exist; use 'istioctl create' or 'istioctl apply' to make it"}
	case errors.Is(err, store.ErrConflict) && m.Meta.ResourceVersion != "":
		return &store.Error{Kind: store.ErrConflict, Detail: fmt.Sprintf(
			"is not the one with resourceVersion %s of %s; get it again, or leave metadata.resourceVersion out to overwrite it",
			m.Meta.ResourceVersion, m.Place())}
	}
	return err
}
