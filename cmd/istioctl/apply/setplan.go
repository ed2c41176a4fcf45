package apply

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/manifest"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/printer"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/writes"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

// step is a store operation with the state that it was made for.
type step struct {
	store.Op
	before *schema.Object // nil for none
	object *schema.Object // names the object
	file   *manifest.Manifest
	idle   bool // changes nothing, so nothing is sent
}

// plan returns the steps that bring the stored objects to the state of the files,
// without those that were told. Each requires that the state it was made for is still
// stored. Objects come before those that may refer to them; deletes come last, in the
// opposite order.
func (t *set) plan(ctx context.Context) ([]step, error) {
	stored, err := t.stored(ctx)
	if err != nil {
		return nil, err
	}
	var steps []step
	for _, m := range t.list {
		if t.told[m.Key()] {
			continue
		}
		next, err := t.step(ctx, m, stored[m.Key()])
		if err != nil {
			return nil, &misfit{m, err}
		}
		steps = append(steps, next)
	}
	if t.prune {
		steps = append(steps, t.pruned(stored)...)
	}
	return steps, nil
}

// misfit is the error of an object that cannot be applied.
type misfit struct {
	manifest.Manifest
	err error
}

func (e *misfit) Error() string {
	return fmt.Sprintf("%s: %s%s %s", e.Place(), printer.Label(e.Object), printer.Where(e.Object), e.err)
}

func (t *set) step(ctx context.Context, m manifest.Manifest, before *schema.Object) (step, error) {
	o, err := t.owned(m, before)
	if err != nil {
		return step{}, err
	}
	meta, verb := o.Meta, store.OpUpdate
	switch {
	case meta.ResourceVersion != "":
	case before == nil:
		verb = store.OpCreate
	default:
		meta.ResourceVersion = before.Meta.ResourceVersion
	}
	if o, err = o.WithMeta(meta); err != nil {
		return step{}, err
	}
	op := store.Op{Verb: verb, Object: o}
	return step{Op: op, before: before, object: m.Object, file: &m, idle: changesNothing(ctx, op, before)}, nil
}

// changesNothing reports whether an operation is known to change nothing. A read hides
// private fields, so an operation on an object that has some may change something.
func changesNothing(ctx context.Context, op store.Op, before *schema.Object) bool {
	if before == nil || op.Verb != store.OpUpdate {
		return false
	}
	out, err := op.Evaluate(before, store.AuthorOf(ctx))
	return err == nil && out.Stored == before
}

// prunes reports whether a stored object is deleted if it is not in the files. It never
// is if it has a different owner. Without --owner, any owner is a different one.
func (t *set) prunes(o *schema.Object, namespaces map[string]bool) bool {
	return o.Meta.Labels[ownerLabel] == t.owner && t.selector.matches(o) &&
		(t.owner != "" || namespaces[o.Meta.Namespace]) && o.Meta.DeletionTimestamp == nil
}

// pruned returns deletes of the objects that are no longer in the files. Each of them
// requires that the object has not changed since it was read.
func (t *set) pruned(stored map[schema.Key]*schema.Object) (out []step) {
	wanted, namespaces := map[schema.Key]bool{}, map[string]bool{}
	for _, m := range t.list {
		wanted[m.Key()], namespaces[m.Meta.Namespace] = true, true
	}
	for _, o := range slices.SortedFunc(maps.Values(stored), referringFirst) {
		if !wanted[o.Key()] && !t.told[o.Key()] && t.prunes(o, namespaces) {
			pre := store.Preconditions{UID: string(o.Meta.UID), ResourceVersion: o.Meta.ResourceVersion}
			out = append(out, step{Op: store.Op{Verb: store.OpDelete, Key: o.Key(), Pre: pre}, before: o, object: o})
		}
	}
	return out
}

// referringFirst orders objects before those that they may refer to, then by key.
func referringFirst(a, b *schema.Object) int {
	return cmp.Or(schema.ReferenceRank(b)-schema.ReferenceRank(a), strings.Compare(a.Key().String(), b.Key().String()))
}

// outcome returns the result of a step for its object, given the state after it.
func (s step) outcome(done *schema.Object) writes.Outcome {
	switch {
	case s.Verb == store.OpCreate:
		return writes.Created
	case s.Verb == store.OpDelete && done.Meta.DeletionTimestamp != nil:
		return writes.Deleting
	case s.Verb == store.OpDelete:
		return writes.Deleted
	case s.before != nil && bytes.Equal(s.before.JSON(), done.JSON()):
		return writes.Unchanged
	}
	return writes.Replaced
}
