package render

import (
	"net/url"
	"slices"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/server/wire"
	"github.com/pilot-api/pilot-api/store"
)

// Selection is the part of a scope that a client's selectors describe.
type Selection struct {
	Kinds  []*schema.Kind // nil for all kinds of the scope
	labels labels.Selector
	fields schema.FieldSelector
}

// Bounds of selectors. Every object, and every change that a watch sees, is matched
// against them.
const (
	maxRequirements = 100
	maxValues       = 1000 // of all requirements together
)

// ParseSelection reads labelSelector and fieldSelector.
func (k *Resource) ParseSelection(q url.Values) (Selection, error) {
	ls, err := labels.Parse(q.Get("labelSelector"))
	if err != nil {
		return Selection{}, wire.BadRequest("query parameter labelSelector: %q: %v", q.Get("labelSelector"), err)
	}
	fs, err := schema.ParseFieldSelector(k.Kind, q.Get("fieldSelector"))
	if err != nil {
		return Selection{}, wire.BadRequest("query parameter fieldSelector: %v", err)
	}
	return Selection{labels: ls, fields: fs}, checkSize(ls, fs)
}

func checkSize(ls labels.Selector, fs schema.FieldSelector) error {
	asked, _ := ls.Requirements()
	n, values := len(asked)+len(fs), len(fs)
	for _, one := range asked {
		values += len(one.ValuesUnsorted())
	}
	if n > maxRequirements || values > maxValues {
		return wire.BadRequest("query parameters labelSelector and fieldSelector: must have at most %d requirements and %d values, found %d and %d", maxRequirements, maxValues, n, values)
	}
	return nil
}

// CheckGiven refuses a selector that is present but selects everything, such as one of
// blanks or commas. An unset variable must not widen a deletion.
func (s Selection) CheckGiven(q url.Values) error {
	if q.Has("labelSelector") && s.labels.Empty() {
		return wire.BadParam(q, "labelSelector", "a selector of labels; leave it out to mean all objects")
	}
	if q.Has("fieldSelector") && len(s.fields) == 0 {
		return wire.BadParam(q, "fieldSelector", "a selector of fields; leave it out to mean all objects")
	}
	return nil
}

// All reports whether the selection contains every object.
func (s Selection) All() bool { return s.Kinds == nil && s.labels.Empty() && len(s.fields) == 0 }

// Matches reports whether an object is selected.
func (s Selection) Matches(o *schema.Object) bool {
	return (s.Kinds == nil || slices.Contains(s.Kinds, o.Kind)) &&
		s.labels.Matches(labels.Set(o.Meta.Labels)) && s.fields.Matches(o)
}

// Narrow adds the names that the selectors require to the scope, so that the store
// need not examine the rest.
func (s Selection) Narrow(scope store.Scope) store.Scope {
	if ns := s.fields.Exact(schema.FieldNamespace); ns != "" && scope.Namespace == "" {
		scope.Namespace = ns
	}
	if name := s.fields.Exact(schema.FieldName); name != "" && scope.Namespace != "" && scope.Kind != nil {
		scope.Name = name
	}
	return scope
}

// From returns the selected items. It does not change list, which may be shared.
func (s Selection) From(list *store.List) *store.List {
	if s.All() {
		return list
	}
	kept := make([]*schema.Object, 0, len(list.Items))
	for _, o := range list.Items {
		if s.Matches(o) {
			kept = append(kept, o)
		}
	}
	return &store.List{Revision: list.Revision, Items: kept}
}

// event returns a change as it looks to a client that sees only the selected
// objects: an object that leaves the selection is deleted, one that enters it is
// added. If the store does not know the state before, event passes the change on as
// MODIFIED or DELETED, which a client accepts for an object that it has never seen.
func (s Selection) event(e store.Event) (store.Event, bool) {
	now := s.Matches(e.Object)
	if e.Type != store.Modified {
		return e, now
	}
	before := e.Previous == nil || s.Matches(e.Previous)
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

// Events returns the events of a revision for a client that sees only the
// selected objects.
func (s Selection) Events(all []store.Event) []store.Event {
	if s.All() {
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

// lastSeen returns the last selected state of an object, at the revision of the
// change that removed it from the selection.
func lastSeen(e store.Event) *schema.Object {
	if e.Previous == nil {
		return e.Object
	}
	return e.Previous.AtRevision(e.Object.Revision())
}

// ListParams are the query parameters of a list or a watch.
var ListParams = wire.Params("labelSelector", "fieldSelector", "resourceVersion", "resourceVersionMatch", "limit", "continue", "includeObject", "watch", "timeoutSeconds", "allowWatchBookmarks", "sendInitialEvents", "statusEvents", "wholeRevisions")
