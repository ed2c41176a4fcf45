package store

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	"github.com/google/uuid"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pilot-api/pilot-api/schema"
)

// Apply says what an operation makes of the stored object, nil when there is
// none: the rules of Create, Update and Delete, the same for every driver.
//
// The result has no resourceVersion yet. It is nil for a delete, and it is
// current itself when nothing changes, so that there is nothing to write.
func (o Op) Apply(current *schema.Object) (*schema.Object, error) {
	switch o.Verb {
	case OpCreate:
		return o.create(current)
	case OpUpdate:
		return o.update(current)
	case OpDelete:
		return nil, o.checkCurrent(current, o.Pre)
	}
	return nil, &Error{Kind: ErrInvalid, Key: o.Target(), Detail: fmt.Sprintf(
		"unknown operation %q, allowed are %s, %s and %s", o.Verb, OpCreate, OpUpdate, OpDelete)}
}

func (o Op) create(current *schema.Object) (*schema.Object, error) {
	if current != nil {
		return nil, &Error{Kind: ErrExists, Key: o.Target(), Current: current.Meta.ResourceVersion}
	}
	meta := o.Object.Meta
	meta.ResourceVersion = ""
	meta.UID = types.UID(uuid.NewString())
	meta.CreationTimestamp = metav1.NewTime(time.Now().UTC().Truncate(time.Second))
	meta.Generation = 1
	return o.Object.WithMeta(meta)
}

func (o Op) update(current *schema.Object) (*schema.Object, error) {
	given := o.Object.Meta
	err := o.checkCurrent(current, Preconditions{UID: string(given.UID), ResourceVersion: given.ResourceVersion})
	if err != nil {
		return nil, err
	}
	meta := given
	meta.ResourceVersion = current.Meta.ResourceVersion
	meta.UID = current.Meta.UID
	meta.CreationTimestamp = current.Meta.CreationTimestamp
	meta.Generation = current.Meta.Generation
	if !sameJSON(o.Object.SpecJSON(), current.SpecJSON()) {
		meta.Generation++
		return o.Object.WithMeta(meta)
	}
	next, err := current.WithMeta(meta)
	if err != nil {
		return nil, err
	}
	if same, err := sameText(next, current); err != nil || same {
		return current, err
	}
	return next, nil
}

// checkCurrent is ErrNotFound without an object and ErrConflict when it is not
// the one that was meant.
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
	case pre.ResourceVersion != "" && pre.ResourceVersion != stored.ResourceVersion:
		conflict.Detail = fmt.Sprintf("the stored object has resourceVersion %s, not %s: it was changed meanwhile", stored.ResourceVersion, pre.ResourceVersion)
		return conflict
	}
	return nil
}

func sameText(a, b *schema.Object) (bool, error) {
	left, err := a.Encoded()
	if err != nil {
		return false, err
	}
	right, err := b.Encoded()
	return bytes.Equal(left, right), err
}

// sameJSON compares values, not texts: the order of fields and the escaping of
// characters say nothing.
func sameJSON(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	left, errLeft := decodeAny(a)
	right, errRight := decodeAny(b)
	return errLeft == nil && errRight == nil && reflect.DeepEqual(left, right)
}

func decodeAny(text []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber() // 1<<60 and its neighbours must not look alike.
	var v any
	err := d.Decode(&v)
	return v, err
}

// One is the result of a transaction of one operation.
func One(objs []*schema.Object, err error) (*schema.Object, error) {
	if err != nil {
		return nil, err
	}
	return objs[0], nil
}

// Stamped is an object as it reads at a revision: after Apply, the state that
// was written there, or for a delete the last state.
func Stamped(obj *schema.Object, revision int64) (*schema.Object, error) {
	text, err := obj.Encoded()
	if err != nil {
		return nil, err
	}
	return schema.Stored(text, revision)
}
