package server

import (
	"net/url"
	"slices"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

// selection is the part of a scope that a client describes by selectors.
type selection struct {
	kinds  []*schema.Kind // nil for all of the scope
	labels labels.Selector
	fields schema.FieldSelector
}

// Bounds of selectors, which every object and every change that a watch sees is
// held against.
const (
	maxRequirements = 100
	maxValues       = 1000 // of all requirements
)

func (k *resource) selection(q url.Values) (selection, error) {
	ls, err := labels.Parse(q.Get("labelSelector"))
	if err != nil {
		return selection{}, badRequest("query parameter labelSelector: %q: %v", q.Get("labelSelector"), err)
	}
	fs, err := schema.ParseFieldSelector(k.kind, q.Get("fieldSelector"))
	if err != nil {
		return selection{}, badRequest("query parameter fieldSelector: %v", err)
	}
	return selection{labels: ls, fields: fs}, checkSize(ls, fs)
}

func checkSize(ls labels.Selector, fs schema.FieldSelector) error {
	asked, _ := ls.Requirements()
	n, values := len(asked)+len(fs), len(fs)
	for _, one := range asked {
		values += len(one.ValuesUnsorted())
	}
	if n > maxRequirements || values > maxValues {
		return badRequest("query parameters labelSelector and fieldSelector: must have at most %d requirements and %d values, found %d and %d", maxRequirements, maxValues, n, values)
	}
	return nil
}

// all reports whether nothing is filtered out.
func (s selection) all() bool { return s.kinds == nil && s.labels.Empty() && len(s.fields) == 0 }

func (s selection) matches(o *schema.Object) bool {
	return (s.kinds == nil || slices.Contains(s.kinds, o.Kind)) &&
		s.labels.Matches(labels.Set(o.Meta.Labels)) && s.fields.Matches(o)
}

// narrow puts what the selectors say about names into the scope, so that the
// store need not look at the rest.
func (s selection) narrow(scope store.Scope) store.Scope {
	if ns := s.fields.Exact(schema.FieldNamespace); ns != "" && scope.Namespace == "" {
		scope.Namespace = ns
	}
	if name := s.fields.Exact(schema.FieldName); name != "" && scope.Namespace != "" && scope.Kind != nil {
		scope.Name = name
	}
	return scope
}

// from keeps the selected items. The list given may be shared and stays as it
// is.
func (s selection) from(list *store.List) *store.List {
	if s.all() {
		return list
	}
	kept := make([]*schema.Object, 0, len(list.Items))
	for _, o := range list.Items {
		if s.matches(o) {
			kept = append(kept, o)
		}
	}
	return &store.List{Revision: list.Revision, Items: kept}
}

// event is how a change looks to somebody who sees only the selected objects:
// one that leaves the selection is deleted to them, one that enters it is
// added. When the store does not know the state before, the change is passed
// on as MODIFIED or DELETED, which a client that never saw the object can
// take.
func (s selection) event(e store.Event) (store.Event, bool) {
	now := s.matches(e.Object)
	if e.Type != store.Modified {
		return e, now
	}
	before := e.Previous == nil || s.matches(e.Previous)
	switch {
	case now && before:
		return e, true
	case now:
		return store.Event{Type: store.Added, Object: e.Object}, true
	case before:
		return store.Event{Type: store.Deleted, Object: lastSeen(e)}, true
	}
	return e, false
}

// events are those of a revision that somebody sees who sees only the selected
// objects.
func (s selection) events(all []store.Event) []store.Event {
	if s.all() {
		return all
	}
	var seen []store.Event
	for _, e := range all {
		if e, ok := s.event(e); ok {
			seen = append(seen, e)
		}
	}
	return seen
}

// lastSeen is the last selected state of an object, at the revision of the
// change that took it out of the selection.
func lastSeen(e store.Event) *schema.Object {
	if e.Previous == nil {
		return e.Object
	}
	return e.Previous.AtRevision(e.Object.Revision())
}
