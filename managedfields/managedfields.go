// Package managedfields keeps who owns which field of an object, and merges what
// somebody applies into it: the server-side apply of Kubernetes, by its own
// library, over types that are made of the kinds' JSON Schemas.
//
// Owners are kept since an object was first applied
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

// MaxManagers bounds the owners of one object; what they own takes at most
// schema.MaxOwnersBytes. Of those that do not apply, the library keeps ten.
const MaxManagers = 64

// ErrTooMany is why somebody cannot become an owner.
var ErrTooMany = fmt.Errorf("an object can have %d field managers, whose managedFields are %d bytes long together", MaxManagers, schema.MaxOwnersBytes)

// Misfit is why a part can be merged into no object: an entry of a list that several
// may write at is there twice, or lacks what it is known by.
type Misfit struct{ Field, Message string }

func (m *Misfit) Error() string { return m.Field + ": " + m.Message }

// misfitOf reads one out of the library's words, the first if there are several.
func misfitOf(err error) *Misfit {
	words := strings.TrimSpace(strings.TrimPrefix(err.Error(), "errors:"))
	words, _, _ = strings.Cut(words, "\n")
	field, message, _ := strings.Cut(strings.TrimPrefix(words, "."), ": ")
	return &Misfit{field, message}
}

// Apply is the text of an object after a manager has applied a part of it; current
// is nil where there is none. A conflict is an apierrors.StatusError; see Misfit and
// ErrTooMany for what else it can be. The text is yet to be decoded and validated.
func Apply(current *schema.Object, part *schema.Part, manager string, force bool) ([]byte, error) {
	live, err := generic(current, part.Kind)
	if err != nil {
		return nil, err
	}
	fields := (&unstructured.Unstructured{Object: part.Fields}).DeepCopy()
	tracker := trackers()[part.Kind]
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

// Updated are the owners after a manager has put next in the place of current:
// those that next itself names, or else those of current, and the manager of what
// changes. There are none as long as nobody has applied the object.
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

// Given are the owners that an object names itself: nil if they are not such as
// this package makes.
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
	done, err := trackers()[next.Kind].Update(live, wanted, Manager(manager))
	if err != nil {
		return nil, err
	}
	return done.(*unstructured.Unstructured).GetManagedFields(), nil
}

// appliers are the owners that have applied, if that is few enough.
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

// version stands behind the name of a program: kubectl/v1.37.2.
var version = regexp.MustCompile(`/v?\d[^/]*$`)

// Manager is the name of a program as a field manager.
func Manager(program string) string { return version.ReplaceAllString(program, "") }

// generic is an object as the library knows it, an empty one for none.
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
