package apply

import (
	"cmp"
	"fmt"
	"maps"

	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/manifest"
	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/schema"
)

// ownerLabel names the set of files that an object comes from.
const ownerLabel = "registry.istio.io/owner"

// unowned finds objects with a different owner than that of the command line.
func (f *SetFlags) unowned(list []manifest.Manifest) diag.List {
	var out diag.List
	for _, m := range list {
		if said := m.Meta.Labels[ownerLabel]; f.owner != "" && said != "" && said != f.owner {
			out = append(out, m.Problem(diag.Error, diag.FieldInvalid, "metadata.labels["+ownerLabel+"]",
				fmt.Sprintf("is %q, the command line says --owner %q", said, f.owner)))
		}
	}
	return out
}

// owned returns the object of a file with its owner. That is the owner of the command
// line or of the file, or else that of the stored object, nil for none, so that no apply
// removes an owner. If the stored object has another owner, that is an error.
func (f *SetFlags) owned(m manifest.Manifest, before *schema.Object) (*schema.Object, error) {
	stated := m.Meta.Labels[ownerLabel]
	owner, has := cmp.Or(f.owner, stated), ""
	if before != nil {
		has = before.Meta.Labels[ownerLabel]
	}
	switch {
	case has == "" || has == owner || f.takeOver:
	case owner == "" && !f.prune:
		owner = has
	case owner == "":
		return nil, fmt.Errorf("belongs to owner %q, and no --owner is given", has)
	default:
		return nil, fmt.Errorf("belongs to owner %q, not to %q; --owner %s --take-ownership makes it the object of %[2]q", has, owner, owner)
	}
	if owner == stated {
		return m.Object, nil
	}
	meta := m.Meta
	meta.Labels = maps.Clone(meta.Labels)
	if meta.Labels == nil {
		meta.Labels = map[string]string{}
	}
	meta.Labels[ownerLabel] = owner
	return m.WithMeta(meta)
}

// keepOwner returns a file's object as an apply without flags sends it: with the owner
// of the stored object. An owner that the file lacks is kept only if the object is
// still the one that was read.
func keepOwner(m manifest.Manifest, before *schema.Object) (manifest.Manifest, error) {
	o, err := new(SetFlags).owned(m, before)
	if err != nil || o == m.Object {
		return m, err
	}
	meta := o.Meta
	meta.ResourceVersion = cmp.Or(meta.ResourceVersion, before.Meta.ResourceVersion)
	if o, err = o.WithMeta(meta); err != nil {
		return m, err
	}
	return m.As(o), nil
}
