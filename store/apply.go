package store

import (
	"fmt"
	"strconv"
	"time"

	"github.com/google/uuid"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store/managedfields"
)

// Outcome is the result of an operation on a stored object.
type Outcome struct {
	// Stored is the object after the operation. It is nil if the object was removed. It is
	// the same pointer as before if nothing changed; then there is nothing to write.
	Stored *schema.Object
	// Answer is the result for the caller: Stored, or the last state of an object that
	// was removed. Its resourceVersion is not set yet.
	Answer *schema.Object
}

// Evaluate returns the outcome of an author's operation on the stored object; current is
// nil if there is none. Every driver applies these rules to its writes.
func (o Op) Evaluate(current *schema.Object, by Author) (Outcome, error) {
	switch o.Verb {
	case OpCreate:
		return stored(o.create(o.Object, current))
	case OpUpdate:
		if current == nil && o.Change != nil {
			return Outcome{}, &Error{Kind: ErrNotFound, Key: o.Key}
		}
		return o.update(current, by)
	case OpDelete:
		return o.delete(current)
	case OpApply:
		if current == nil {
			return o.applyNew()
		}
		return o.update(current, by)
	}
	return Outcome{}, &Error{Kind: ErrInvalid, Key: o.Target(), Detail: fmt.Sprintf(
		"unknown operation %q, allowed are %s, %s, %s and %s", o.Verb, OpCreate, OpUpdate, OpDelete, OpApply)}
}

func stored(obj *schema.Object, err error) (Outcome, error) { return Outcome{obj, obj}, err }

// applyNew creates an object, unless the operation refers to an earlier object.
func (o Op) applyNew() (Outcome, error) {
	obj, err := o.replacement(nil)
	switch {
	case err != nil:
		return Outcome{}, err
	case obj.Meta.ResourceVersion != "":
		return Outcome{}, &Error{Kind: ErrNotFound, Key: o.Target()}
	case obj.Meta.UID != "":
		return Outcome{}, &Error{Kind: ErrConflict, Key: o.Target(), Detail: fmt.Sprintf(
			"the object with uid %s is meant, which is gone, and no other is there", obj.Meta.UID)}
	}
	return stored(o.create(obj, nil))
}

func (o Op) create(obj, current *schema.Object) (*schema.Object, error) {
	if current != nil {
		return nil, &Error{Kind: ErrExists, Key: o.Target(), Current: current.Meta.ResourceVersion}
	}
	given, problems := obj.Keeping(nil)
	if len(problems) > 0 {
		return nil, &Error{Kind: ErrInvalid, Key: o.Target(), Problems: problems}
	}
	return given.WithMeta(underServer(given.Meta, metav1.ObjectMeta{
		UID: types.UID(uuid.NewString()), CreationTimestamp: now(), Generation: 1,
		ManagedFields: managedfields.Given(given.Meta.ManagedFields),
	}))
}

func (o Op) update(current *schema.Object, by Author) (Outcome, error) {
	obj, err := o.replacement(current)
	if err != nil {
		return Outcome{}, err
	}
	given := obj.Meta
	err = o.checkCurrent(current, Preconditions{UID: string(given.UID), ResourceVersion: given.ResourceVersion})
	if err != nil {
		return Outcome{}, err
	}
	if err := o.checkFinalizers(given.Finalizers, current.Meta); err != nil {
		return Outcome{}, err
	}
	obj, problems := obj.Keeping(current)
	if len(problems) > 0 {
		return Outcome{}, &Error{Kind: ErrInvalid, Key: o.Target(), Problems: problems}
	}
	next, err := merged(obj, current, o.owners(obj, current, by))
	switch {
	case err != nil:
		return Outcome{}, err
	case current.Meta.DeletionTimestamp != nil && len(given.Finalizers) == 0:
		return Outcome{Answer: next}, nil
	}
	return stored(next, nil)
}

// owners returns the managed fields of the object that replaces current. The caller of
// an apply by function has already computed them.
func (o Op) owners(given, current *schema.Object, by Author) []metav1.ManagedFieldsEntry {
	if o.Verb == OpApply && o.Change != nil {
		return managedfields.Given(given.Meta.ManagedFields)
	}
	return managedfields.Updated(current, given, by.UserAgent)
}

// replacement returns the object that the operation puts in the place of current.
func (o Op) replacement(current *schema.Object) (*schema.Object, error) {
	if o.Change == nil {
		return o.Object, nil
	}
	if err := o.CheckPre(current); err != nil {
		return nil, err
	}
	next, err := o.Change(current)
	if err == nil && next.Key() != o.Key {
		err = &Error{Kind: ErrInvalid, Key: o.Key, Detail: fmt.Sprintf("a change cannot make %s of it", next.Key())}
	}
	return next, err
}

// merged returns the given object with the fields that the server owns taken from the
// current one. It returns current itself if nothing changes.
func merged(given, current *schema.Object, owners []metav1.ManagedFieldsEntry) (*schema.Object, error) {
	meta := underServer(given.Meta, current.Meta)
	meta.ManagedFields = owners
	if !given.SameSpec(current) {
		meta.Generation++
		return given.WithMeta(meta)
	}
	next, err := current.WithMeta(meta)
	if err != nil {
		return nil, err
	}
	if next.IsEncodedAs(current.Encoded()) {
		return current, nil
	}
	return next, nil
}

// underServer returns the metadata that a client gave, with the fields that the server
// owns replaced. The selfLink of Kubernetes is not kept.
func underServer(given, server metav1.ObjectMeta) metav1.ObjectMeta {
	given.ResourceVersion = server.ResourceVersion
	given.UID = server.UID
	given.CreationTimestamp = server.CreationTimestamp
	given.Generation = server.Generation
	given.DeletionTimestamp = server.DeletionTimestamp
	given.DeletionGracePeriodSeconds = server.DeletionGracePeriodSeconds
	given.ManagedFields = server.ManagedFields
	//lint:ignore SA1019 What clients still send must not be stored.
	given.SelfLink = ""
	return given
}

// checkFinalizers lets an object that is being deleted only lose finalizers. A new
// finalizer would keep the object although its deletion was promised.
func (o Op) checkFinalizers(given []string, current metav1.ObjectMeta) error {
	if current.DeletionTimestamp == nil {
		return nil
	}
	known := sets.New(current.Finalizers...)
	for i, name := range given {
		if !known.Has(name) {
			field := fmt.Sprintf("metadata.finalizers[%d]", i)
			return &Error{Kind: ErrInvalid, Key: o.Target(), Problems: diag.List{
				complaint(o, diag.FieldForbidden, field, name, "no finalizer can be added to an object that is being deleted"),
			}}
		}
	}
	return nil
}

func (o Op) delete(current *schema.Object) (Outcome, error) {
	err := o.checkCurrent(current, o.Pre)
	switch {
	case err != nil:
		return Outcome{}, err
	case len(current.Meta.Finalizers) == 0:
		return Outcome{Answer: current}, nil
	case current.Meta.DeletionTimestamp != nil:
		return stored(current, nil)
	}
	meta, at, grace := current.Meta, now(), int64(0)
	meta.DeletionTimestamp, meta.DeletionGracePeriodSeconds = &at, &grace
	meta.Generation++
	return stored(current.WithMeta(meta))
}

// now returns the time with the precision of metadata, seconds.
func now() metav1.Time { return metav1.NewTime(time.Now().UTC().Truncate(time.Second)) }

// CheckPre returns an error if the stored object does not meet the preconditions of the
// operation; current is nil if there is none.
func (o Op) CheckPre(current *schema.Object) error {
	if o.Pre == (Preconditions{}) {
		return nil
	}
	return o.checkCurrent(current, o.Pre)
}

// allows reports whether a condition on a resourceVersion holds for the stored object; ""
// is no condition.
func (o Op) allows(version string, stored *schema.Object) bool {
	if version == "" || version == stored.Meta.ResourceVersion {
		return true
	}
	later, err := strconv.ParseInt(version, 10, 64)
	return err == nil && stored.Revision() < later && later <= o.Until
}

// checkCurrent returns ErrNotFound if there is no object, and ErrConflict if the stored
// object does not meet the preconditions.
func (o Op) checkCurrent(current *schema.Object, pre Preconditions) error {
	if current == nil {
		return &Error{Kind: ErrNotFound, Key: o.Target()}
	}
	stored := current.Meta
	conflict := &Error{Kind: ErrConflict, Key: o.Target(), Current: stored.ResourceVersion}
	switch {
	case pre.UID != "" && pre.UID != string(stored.UID):
		conflict.Detail = fmt.Sprintf("the stored object has uid %s, not %s: it was deleted and created anew", stored.UID, pre.UID)
		return conflict
	case !o.allows(pre.ResourceVersion, current):
		conflict.Detail = fmt.Sprintf("the stored object has resourceVersion %s, not %s: it was changed meanwhile, or that one is of another server", stored.ResourceVersion, pre.ResourceVersion)
		return conflict
	}
	return nil
}
