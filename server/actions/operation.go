package actions

import (
	"cmp"
	"context"
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/server/objects"
	"github.com/pilot-api/pilot-api/server/wire"
	"github.com/pilot-api/pilot-api/store"
)

// operation is one operation of a transaction. Create, update and apply have an object,
// whose resourceVersion is a precondition; patch and delete have a target. Apply with a
// fieldManager is a server-side apply of some fields of the object.
type operation struct {
	Verb   string          `json:"verb"`
	Object json.RawMessage `json:"object,omitempty"`
	Target *target         `json:"target,omitempty"`

	FieldManager *string `json:"fieldManager,omitempty"`
	Force        bool    `json:"force,omitempty"`

	PatchType     string                `json:"patchType,omitempty"`
	Patch         json.RawMessage       `json:"patch,omitempty"`
	Preconditions *metav1.Preconditions `json:"preconditions,omitempty"`
}

// target names the object of an operation. Without an apiVersion, the object is in its
// stored version.
type target struct {
	APIVersion string `json:"apiVersion,omitempty"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace"`
	Name       string `json:"name"`
}

func (t target) key() schema.Key {
	return schema.Key{Kind: t.Kind, Namespace: t.Namespace, Name: t.Name}.Normal()
}

// check requires a target to be complete. It returns the version that it names.
func (t target) check() (version string, err error) {
	for _, one := range []struct{ field, value string }{{"kind", t.Kind}, {"namespace", t.Namespace}, {"name", t.Name}} {
		if of, known := schema.KindByName(t.Kind); known && of.Cluster && one.field == "namespace" {
			continue
		}
		if one.value == "" {
			return "", wire.BadRequest("target.%s: required", one.field)
		}
	}
	kind, err := wire.KindNamed("target.kind", t.Kind)
	switch {
	case err != nil:
		return "", err
	case t.APIVersion == "":
		return kind.Version, nil
	}
	version, ok := kind.VersionIn(t.APIVersion)
	if !ok {
		return "", wire.BadRequest("target.apiVersion: %s has no %q, it is in %s", t.Kind, t.APIVersion, kind.APIVersions())
	}
	return version, nil
}

// step is an operation for the store. version is that of its result, "" for the stored
// version. A step with a function has its warnings once it is done.
type step struct {
	store.Op
	version  string
	warnings diag.List
}

func opsOf(steps []step) []store.Op {
	ops := make([]store.Op, len(steps))
	for i, one := range steps {
		ops[i] = one.Op
	}
	return ops
}

// stepsOf returns operations as steps whose results are in their stored versions.
func stepsOf(ops []store.Op) []step {
	steps := make([]step, len(ops))
	for i, op := range ops {
		steps[i].Op = op
	}
	return steps
}

// readOperation converts an operation to a step.
func (h *Handler) readOperation(ctx context.Context, index int, o operation, into *step) error {
	switch {
	case o.owns():
		return h.applyFields(ctx, index, o, into)
	case o.FieldManager != nil || o.Force:
		return wire.BadRequest("fieldManager and force are for apply")
	}
	switch o.Verb {
	case "create", "update", "apply":
		return h.readWhole(ctx, o, into)
	case "patch":
		return h.readPatch(ctx, index, o, into)
	case "delete":
		return o.readTarget(store.OpDelete, o.Object == nil && o.Patch == nil && o.PatchType == "", "target, and perhaps preconditions", into)
	}
	return wire.BadRequest("verb: must be create, update, apply, patch or delete, found %q", o.Verb)
}

// owns reports whether the operation is a server-side apply, which owns fields.
func (o operation) owns() bool { return o.Verb == "apply" && (o.FieldManager != nil || o.Force) }

// applyFields reads a server-side apply.
func (h *Handler) applyFields(ctx context.Context, index int, o operation, into *step) error {
	if err := o.wantsObject(); err != nil {
		return err
	}
	a, err := h.objects.Application(ctx, o.Object, schema.Key{Namespace: schema.DefaultNamespace}, *cmp.Or(o.FieldManager, new(string)), o.Force)
	if err != nil {
		return err
	}
	key := a.Part.Key()
	if key.Name == "" {
		return errNameless
	}
	into.version = a.Part.Version
	into.Op = store.Op{Verb: store.OpApply, Key: key, Change: h.inOperation(ctx, index, key, func(current *schema.Object) (*schema.Object, error) {
		next, err := a.Change(current)
		if err == nil {
			into.warnings = a.Warnings
		}
		return next, err
	})}
	return nil
}

// inOperation returns change with errors that name its operation. It changes nothing
// after ctx has ended.
func (h *Handler) inOperation(ctx context.Context, index int, key schema.Key, change store.Change) store.Change {
	change = h.bodies.Counted(change)
	return func(current *schema.Object) (*schema.Object, error) {
		if err := store.Overdue(ctx); err != nil {
			return nil, err
		}
		next, err := change(current)
		if err != nil {
			return nil, atOperation(err, index, key)
		}
		return next, nil
	}
}

var errNameless = wire.BadRequest("object.metadata.name: required in a transaction")

// readTarget reads an operation on the object that its target names.
func (o operation) readTarget(verb store.Verb, ok bool, wants string, into *step) (err error) {
	if into.Pre, err = objects.Preconditions(o.Preconditions); err != nil {
		return err
	}
	if o.Target == nil {
		return wire.BadRequest("target: required to %s", o.Verb)
	}
	if into.version, err = o.Target.check(); err != nil {
		return err
	}
	into.Verb, into.Key = verb, o.Target.key()
	return o.wants(ok, wants)
}

func (o operation) wants(ok bool, what string) error {
	if ok {
		return nil
	}
	return wire.BadRequest("%s takes %s, and nothing else", o.Verb, what)
}

func (o operation) wantsObject() error {
	ok := o.Object != nil && o.Target == nil && o.Patch == nil && o.PatchType == "" && o.Preconditions == nil
	return o.wants(ok, "an object, whose metadata.resourceVersion is the precondition")
}

// readWhole reads an operation with a whole object, which it decodes as strictly as a
// request of its own.
func (h *Handler) readWhole(ctx context.Context, o operation, into *step) error {
	if err := o.wantsObject(); err != nil {
		return err
	}
	obj, problems := schema.Decode(o.Object, schema.Options{Namespace: schema.DefaultNamespace})
	if obj == nil && o.Verb != string(store.OpCreate) && len(problems) > 0 {
		obj, problems = h.bodies.DecodeNext(ctx, o.Object, schema.Key(problems[0].Object), problems)
	}
	switch {
	case obj == nil:
		return wire.Refused(problems)
	case obj.Meta.Name == "":
		return errNameless
	}
	*into = step{Op: store.Op{Verb: store.Verb(o.Verb), Object: obj}, version: obj.WrittenIn(), warnings: problems.Warnings()}
	return nil
}

func (h *Handler) readPatch(ctx context.Context, index int, o operation, into *step) error {
	if err := o.readTarget(store.OpUpdate, o.Patch != nil && o.Object == nil, "target, patchType and patch, and perhaps preconditions", into); err != nil {
		return err
	}
	patcher, err := objects.PatcherOf(o.Patch, cmp.Or(o.PatchType, string(types.MergePatchType)))
	if err != nil {
		return err
	}
	into.Change = h.inOperation(ctx, index, into.Key, patcher.Of(into.version, &into.warnings))
	return nil
}
