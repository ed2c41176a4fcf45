// Package managedfields tracks which manager owns which field of an object, and merges
// applied parts into the object. It is the server-side apply of Kubernetes, and uses the
// library of Kubernetes with types derived from the JSON Schemas of the kinds.
//
// Owners are tracked after an object was first applied
// (docs/decisions/026-server-side-apply.md). All functions are pure, and safe for
// concurrent use.
package managedfields

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/managedfields"

	"github.com/pilot-api/pilot-api/schema"
)

// MaxManagers is the maximum number of owners of one object. Their entries together have at
// most schema.MaxOwnersBytes bytes. The library keeps at most ten owners that do not apply.
const MaxManagers = 64

// ErrTooMany means that an object cannot have a further owner.
var ErrTooMany = fmt.Errorf("an object can have %d field managers, whose managedFields are %d bytes long together", MaxManagers, schema.MaxOwnersBytes)

// Misfit means that a part cannot be merged into any object: an entry of a list with
// several writers occurs twice, or lacks its key.
type Misfit struct{ Field, Message string }

func (m *Misfit) Error() string { return m.Field + ": " + m.Message }

// misfitOf parses the library's error text, and takes the first misfit if there are
// several.
func misfitOf(err error) *Misfit {
	words := strings.TrimSpace(strings.TrimPrefix(err.Error(), "errors:"))
	words, _, _ = strings.Cut(words, "\n")
	field, message, _ := strings.Cut(strings.TrimPrefix(words, "."), ": ")
	return &Misfit{field, message}
}

// Apply returns the text of an object after a manager has applied a part to it;
// current is nil for a new object. A conflict is an apierrors.StatusError; other
// errors may be a Misfit or ErrTooMany. The caller must still decode and validate
// the text.
func Apply(current *schema.Object, part *schema.Part, manager string, force bool) ([]byte, error) {
	live, err := generic(current, part.Kind)
	if err != nil {
		return nil, err
	}
	fields := (&unstructured.Unstructured{Object: part.Fields}).DeepCopy()
	tracker := trackers()[kindVersion{part.Kind, part.Version}]
	merged, err := tracker.Apply(live, fields, manager, force)
	if err != nil {
		if _, misfit := tracker.types.ObjectToTyped(fields); misfit != nil {
			return nil, misfitOf(misfit)
		}
		return nil, err
	}
	next := merged.(*unstructured.Unstructured)
	if !fits(next.GetManagedFields()) {
		return nil, ErrTooMany
	}
	part.Reveal(next.Object)
	return json.Marshal(next.Object)
}

// Updated returns the owners after a manager has replaced current by next. These are the
// owners that next itself names, or else those of current. The manager owns the changed
// fields, in the version in which next was written. Until the object is first applied,
// there are no owners.
func Updated(current, next *schema.Object, manager string) []metav1.ManagedFieldsEntry {
	before := current.Meta.ManagedFields
	if len(before) == 0 && len(next.Meta.ManagedFields) == 0 {
		return nil
	}
	after, err := updated(current, next, manager)
	switch {
	case err != nil:
		return before
	case fits(after):
		return after
	}
	return appliers(after)
}

// Given returns the owners that an object names itself, or nil if this package
// could not have produced them.
func Given(entries []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
	if len(entries) == 0 || !fits(entries) || managedfields.ValidateManagedFields(entries) != nil {
		return nil
	}
	return entries
}

func updated(current, next *schema.Object, manager string) ([]metav1.ManagedFieldsEntry, error) {
	live, err := generic(current, next.Kind)
	if err != nil {
		return nil, err
	}
	wanted, err := generic(next, next.Kind)
	if err != nil {
		return nil, err
	}
	done, err := trackers()[kindVersion{next.Kind, next.WrittenIn()}].Update(live, wanted, Manager(manager))
	if err != nil {
		return nil, err
	}
	return done.(*unstructured.Unstructured).GetManagedFields(), nil
}

// appliers returns the owners that have applied, or nil if they are too many.
func appliers(entries []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
	var out []metav1.ManagedFieldsEntry
	for _, e := range entries {
		if e.Operation == metav1.ManagedFieldsOperationApply {
			out = append(out, e)
		}
	}
	return Given(out)
}

func fits(entries []metav1.ManagedFieldsEntry) bool {
	if len(entries) > MaxManagers {
		return false
	}
	text, err := json.Marshal(entries)
	return err == nil && len(text) <= schema.MaxOwnersBytes
}

// version matches the version behind the name of a program: kubectl/v1.37.2.
var version = regexp.MustCompile(`/v?\d[^/]*$`)

// Manager returns the name of a program as a field manager.
func Manager(program string) string { return version.ReplaceAllString(program, "") }

// generic returns an object in the library's form, an empty one for nil.
func generic(o *schema.Object, kind *schema.Kind) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": kind.APIVersion(), "kind": kind.Kind}}
	if o == nil {
		return u, nil
	}
	if err := utiljson.Unmarshal(o.JSON(), &u.Object); err != nil {
		return nil, errors.Join(fmt.Errorf("read %s", o.Key()), err)
	}
	return u, nil
}
