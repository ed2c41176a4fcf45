package main

import (
	"bytes"
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/pilot-api/pilot-api/client"
	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

// applyTries bounds how many races with other writers an apply loses before it gives
// up. A race is lost when an object is created or deleted between two requests.
const applyTries = 5

func newApply(s *session) *cobra.Command {
	return apply.command(s, &cobra.Command{
		Use:   "apply -f FILE",
		Short: "Make stored objects equal to those of files",
		Long: `Make stored objects equal to those of files, folders, URLs or standard input:
create what is missing, replace what differs, leave alone what is the same. What
the file does not say, such as a label that was added by other means, is not
kept. A file that carries a metadata.resourceVersion replaces only that version.

With --atomic it is one transaction: proxies see all of it at once, and if one
object cannot be applied, nothing is done. --owner does so too, and labels what
it applies; --prune then deletes, in the same transaction, what was applied with
that owner before and is no longer in the files. An owner's name is one for all
namespaces, unless -n names one. Objects of another owner are never touched.

With -l, --prune looks only at objects that have these labels, of the owner, or
without --owner of none, in the namespaces that the files have objects in, or that
of -n. What nobody but its labels marks goes too, also if it was made by hand: to
--dry-run=server it is named. Other than with kubectl, -l leaves nothing of the
files out: an object without these labels is an error.`,
		Example: `  # Bring the server to the state of a folder
  istioctl apply -R -f rules/

  # In one transaction; and what has left the folder goes
  istioctl apply --atomic -f rules/
  istioctl apply --prune --owner shop -R -f rules/ --dry-run=server
  istioctl apply --prune --owner shop -R -f rules/

  # The same by labels that all objects in the folder have
  istioctl apply --prune -l team=shop -R -f rules/ --dry-run=server

  # And wait until every proxy runs it, or one refuses it
  istioctl apply --wait -f rules/reviews.yaml

  # Apply a file from the web
  istioctl apply -f https://example.com/reviews-v2.yaml`,
	})
}

var apply = fileVerb{[]precondition{named("apply"), repeated(diag.Warning)}, checked, applyOne, true}

// applyOne creates or replaces an object. If the object is created or deleted in
// between, applyOne looks again, unless the manifest names a version.
func applyOne(ctx context.Context, c *client.Client, m manifest) (o *schema.Object, what outcome, err error) {
	for range applyTries {
		o, what, err = applyOnce(ctx, c, m)
		raced := errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrExists) || errors.Is(err, store.ErrConflict)
		if !raced || m.Meta.ResourceVersion != "" {
			break
		}
	}
	return o, what, replaceHint(m, err)
}

func applyOnce(ctx context.Context, c *client.Client, m manifest) (*schema.Object, outcome, error) {
	before, err := c.Get(ctx, m.Key(), store.ReadOptions{})
	if errors.Is(err, store.ErrNotFound) && m.Meta.ResourceVersion == "" {
		o, err := c.CreateText(ctx, m.text())
		return o, created, err
	}
	if err != nil {
		return nil, failed, err
	}
	o, err := c.UpdateText(ctx, m.text())
	if err == nil && bytes.Equal(o.JSON(), before.JSON()) {
		return o, unchanged, nil
	}
	return o, replaced, err
}
