package apply

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/pilot-api/pilot-api/client"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/cli"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/manifest"
	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/schema"
)

// pruneSelector selects by labels the objects that a prune may delete, nil for all.
type pruneSelector struct{ labels.Selector }

func (p *pruneSelector) String() string {
	if p.Selector == nil {
		return ""
	}
	return p.Selector.String()
}

func (p *pruneSelector) Type() string { return "string" }

// Set refuses selectors that match objects without labels too.
func (p *pruneSelector) Set(text string) error {
	selected, err := labels.Parse(text)
	if err != nil {
		return err
	}
	if selected.Matches(labels.Set{}) {
		return errors.New("means all objects without labels too: say at least one label that they have, such as team=shop")
	}
	asked, _ := selected.Requirements()
	for _, one := range asked {
		if one.Key() == ownerLabel {
			return errors.New("what one owner applied is pruned with --owner")
		}
	}
	p.Selector = selected
	return nil
}

func (p *pruneSelector) matches(o *schema.Object) bool {
	return p.Selector == nil || p.Matches(labels.Set(o.Meta.Labels))
}

// unselected finds objects that the selector does not match, so that a later prune
// would not see them.
func (p *pruneSelector) unselected(list []manifest.Manifest) diag.List {
	var out diag.List
	for _, m := range list {
		if !p.matches(m.Object) {
			out = append(out, m.Problem(diag.Error, diag.FieldInvalid, "metadata.labels",
				fmt.Sprintf("must match -l %s: without that, what leaves the files would stay on the server", p)))
		}
	}
	return out
}

// candidates returns the stored objects among which to prune.
func (t *set) candidates(ctx context.Context) (*client.ListWithStatus, error) {
	what := client.Selection{Labels: "!" + ownerLabel}
	if t.owner != "" {
		what.Labels = ownerLabel + "=" + t.owner
	}
	if t.selector.Selector != nil {
		what.Labels += "," + t.selector.String()
	}
	if t.NamespaceGiven {
		what.Namespace = t.Namespace
	}
	return cli.List(ctx, t.Session, t.client, what, cli.PageSize)
}
