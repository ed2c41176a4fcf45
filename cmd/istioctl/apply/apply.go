package apply

import (
	"bytes"
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

// applyTries bounds how many races with other writers an apply loses before it gives
// up. A race is lost when an object is created or deleted between two requests.
const applyTries = 5

// NewCommand returns the command apply.
func NewCommand(s *cli.Session) *cobra.Command {
	return apply.command(s, &cobra.Command{
		Use:   "apply -f FILE",
		Short: "Make stored objects equal to those in files",
		Long: `Make the stored objects equal to those of files, folders, URLs or standard input:
create objects that are missing, and replace objects that differ. Fields and labels
that are not in the file are removed from a replaced object, except for its owner. A
file with a metadata.resourceVersion replaces only that version.

--atomic makes all changes in one transaction: proxies see them at once. If one object
cannot be applied, or there are more changes than the server takes in a transaction,
nothing is changed.

--owner adds a label with the owner to the objects. --prune then also deletes objects
that were applied with that owner before and are no longer in the files. An owner's
name is valid for all namespaces, or for one with -n. Objects of other owners are not
changed, unless --take-ownership says so. The changes are made in one transaction if
the server takes them in one, and otherwise in several: objects are written before
those that refer to them, and deleted last, in the opposite order. Objects that are
already as in the files do not count. If one transaction fails, those before it stay;
run the same command again for the rest.

With -l, --prune considers only objects with these labels, in the namespaces of the
objects in the files, or in that of -n. With --owner, they must belong to the owner.
Without it, they must have no owner. All other objects with the labels are deleted, even
if they were made by hand; --dry-run=server lists them. Unlike in kubectl, -l selects
nothing from the files: an object in them without these labels is an error.

With --fail-on warning nothing is written if there is a warning about the files, or if
the server would have one about their objects or, because of them, about others. To find
this out, the server compiles the whole mesh.`,
		Example: `  # Bring the server to the state of a folder
  istioctl apply -R -f rules/

  # In one transaction, or not at all
  istioctl apply --atomic -f rules/

  # Objects that have left the folder are deleted
  istioctl apply --prune --owner shop -R -f rules/ --dry-run=server
  istioctl apply --prune --owner shop -R -f rules/

  # The same, by a label that all objects in the folder have
  istioctl apply --prune -l team=shop -R -f rules/ --dry-run=server

  # Apply a file, and wait until every proxy runs its objects or one refuses them
  istioctl apply --wait -f rules/reviews.yaml

  # In a pipeline that accepts no warnings
  istioctl apply --fail-on warning -R -f rules/

  # Apply a file from the web
  istioctl apply -f https://example.com/reviews-v2.yaml`,
	})
}

var apply = fileVerb{[]manifest.Precondition{manifest.Named("apply"), manifest.Repeated(diag.Warning)}, writes.Checked, One, true}

// One creates or replaces an object. If the object is created or deleted in
// between, One looks again, unless the manifest names a version.
func One(ctx context.Context, c Texts, m manifest.Manifest) (o *schema.Object, what writes.Outcome, err error) {
	for range applyTries {
		o, what, err = applyOnce(ctx, c, m)
		raced := errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrExists) || errors.Is(err, store.ErrConflict)
		if !raced || m.Meta.ResourceVersion != "" {
			break
		}
	}
	return o, what, replaceHint(m, err)
}

func applyOnce(ctx context.Context, c Texts, m manifest.Manifest) (*schema.Object, writes.Outcome, error) {
	before, err := c.Get(ctx, m.Key(), store.ReadOptions{})
	if errors.Is(err, store.ErrNotFound) && m.Meta.ResourceVersion == "" {
		o, err := c.CreateText(ctx, m.Text())
		return o, writes.Created, err
	}
	if err != nil {
		return nil, writes.Failed, err
	}
	next, err := keepOwner(m, before)
	if err != nil {
		return nil, writes.Failed, err
	}
	o, err := c.UpdateText(ctx, next.Text())
	if err == nil && bytes.Equal(o.JSON(), before.JSON()) {
		return o, writes.Unchanged, nil
	}
	return o, writes.Replaced, err
}
