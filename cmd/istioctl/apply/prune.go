package apply

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/pilot-api/pilot-api/client"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/cli"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/manifest"
	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
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

// Set refuses selectors that could match objects that nobody has thought of.
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

// prunes reports whether a stored object is deleted if it is not in the files. It never
// is if it has a different owner. Without --owner, any owner is a different one.
func (t *atomicApply) prunes(o *schema.Object, namespaces map[string]bool) bool {
	return o.Meta.Labels[ownerLabel] == t.owner && t.selector.matches(o) &&
		(t.owner != "" || namespaces[o.Meta.Namespace]) && o.Meta.DeletionTimestamp == nil
}

// pruned returns deletes of the objects that are no longer in the files. Each of them
// requires that the object has not changed since it was read.
func (t *atomicApply) pruned(stored map[schema.Key]*schema.Object) (out []operation) {
	wanted, namespaces := map[schema.Key]bool{}, map[string]bool{}
	for _, m := range t.list {
		wanted[m.Key()], namespaces[m.Meta.Namespace] = true, true
	}
	byName := func(a, b schema.Key) int { return strings.Compare(a.String(), b.String()) }
	for _, key := range slices.SortedFunc(maps.Keys(stored), byName) {
		if o := stored[key]; !wanted[key] && t.prunes(o, namespaces) {
			pre := store.Preconditions{UID: string(o.Meta.UID), ResourceVersion: o.Meta.ResourceVersion}
			out = append(out, operation{Op: store.Op{Verb: store.OpDelete, Key: key, Pre: pre}, before: o, object: o})
		}
	}
	return out
}

// candidates returns the stored objects among which to prune.
func (t *atomicApply) candidates(ctx context.Context) (*client.ListWithStatus, error) {
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
