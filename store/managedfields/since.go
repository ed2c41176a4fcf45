package managedfields

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pilot-api/pilot-api/schema"
)

// Version is a state of an object, and the change that led to it. The state is nil if there
// was no object or it is unknown. Created means that there was no object before. Program is
// "" if it is unknown.
type Version struct {
	Object  *schema.Object
	Created bool
	Program string
	Time    time.Time
}

// beforeFirstApply is Kubernetes's owner of fields whose writer is not known.
const beforeFirstApply = "before-first-apply"

// Past has the owners of an object's fields, computed from its known versions. The zero
// Past is that of an object without known versions.
type Past struct {
	owners []metav1.ManagedFieldsEntry
	before *schema.Object // the newest version
	err    error
}

// Follow returns the past of an object with these versions, the oldest first. It does
// not keep them.
func Follow(versions []Version) Past {
	var p Past
	for _, v := range versions {
		if v.Object == nil {
			p = Past{}
			continue
		}
		owners, err := followed(p.owners, p.before, v)
		if err != nil {
			return Past{err: err}
		}
		p = Past{owners: owners, before: v.Object}
	}
	return p
}

// Since returns the object with the owners that it would have if they had been tracked from
// the start of its past. If the object is newer than its past, it gets no owners.
func Since(past Past, current *schema.Object) (*schema.Object, error) {
	switch {
	case len(current.Meta.ManagedFields) > 0:
		return current, nil
	case past.err != nil:
		return nil, past.err
	case past.before != nil && past.before.Revision() > current.Revision():
		past = Past{}
	}
	owners, err := followed(past.owners, past.before, Version{Object: current})
	if err != nil {
		return nil, err
	}
	meta := current.Meta
	meta.ManagedFields = owners
	return current.WithMeta(meta)
}

// followed returns the owners after one change.
func followed(owners []metav1.ManagedFieldsEntry, before *schema.Object, v Version) ([]metav1.ManagedFieldsEntry, error) {
	manager := Manager(v.Program)
	if manager == "" || before == nil && !v.Created {
		manager = beforeFirstApply
	}
	live, err := generic(before, v.Object.Kind)
	if err != nil {
		return nil, err
	}
	next, err := generic(v.Object, v.Object.Kind)
	if err != nil {
		return nil, err
	}
	live.SetManagedFields(owners)
	next.SetManagedFields(nil)
	begin := time.Now().Truncate(time.Second)
	done, err := trackers()[kindVersion{v.Object.Kind, v.Object.Kind.Version}].Update(live, next, manager)
	if err != nil {
		return nil, err
	}
	return dated(done.(*unstructured.Unstructured).GetManagedFields(), begin, v.Time), nil
}

// dated changes the time of the owners whose entries were written since begin.
func dated(owners []metav1.ManagedFieldsEntry, begin, at time.Time) []metav1.ManagedFieldsEntry {
	for i := range owners {
		if written := owners[i].Time; written != nil && !written.Time.Before(begin) && !at.IsZero() {
			owners[i].Time = &metav1.Time{Time: at.UTC().Truncate(time.Second)}
		}
	}
	return owners
}
