package store

import (
	"cmp"
	"slices"
	"strings"

	"github.com/pilot-api/pilot-api/schema"
)

// Compare orders objects as lists do: by group and kind (the order of
// schema.Kinds), then by "namespace/name" as a text. That is the order of
// Kubernetes, and of keys in etcd: team-a stands before team.
func Compare(a, b *schema.Object) int {
	return cmp.Or(
		compareKinds(a.Kind, b.Kind),
		compareNamespaces(a.Meta.Namespace, b.Meta.Namespace),
		strings.Compare(a.Meta.Name, b.Meta.Name),
	)
}

func compareKinds(a, b *schema.Kind) int {
	return cmp.Or(strings.Compare(a.Group, b.Group), strings.Compare(a.Kind, b.Kind))
}

// compareNamespaces compares them with a slash behind each.
func compareNamespaces(a, b string) int {
	n := min(len(a), len(b))
	switch order := strings.Compare(a[:n], b[:n]); {
	case order != 0 || len(a) == len(b):
		return order
	case len(a) > n:
		return cmp.Compare(a[n], '/')
	default:
		return cmp.Compare('/', b[n])
	}
}

// Index is a sorted set of objects in memory, one for each key. The zero Index
// is empty. It is not safe for concurrent use: its owner guards it.
//
// Objects lie in one sorted slice per kind, so that a kind, and a namespace of
// a kind, is a stretch of it: a list is a copy of pointers, nothing more. A
// write moves the pointers behind it, which is cheap far beyond the number of
// config objects that a mesh has.
type Index struct {
	byKey  map[schema.Key]*schema.Object
	byKind map[string][]*schema.Object
}

// Len is the number of objects.
func (x *Index) Len() int { return len(x.byKey) }

// Get returns nil when there is no such object.
func (x *Index) Get(key schema.Key) *schema.Object { return x.byKey[key] }

// Put adds or replaces an object and returns the one before, if any.
func (x *Index) Put(obj *schema.Object) *schema.Object {
	if x.byKey == nil {
		x.byKey = map[schema.Key]*schema.Object{}
		x.byKind = map[string][]*schema.Object{}
	}
	key := obj.Key()
	previous := x.byKey[key]
	x.byKey[key] = obj
	items := x.byKind[key.Kind]
	i, found := slices.BinarySearchFunc(items, obj, Compare)
	if found {
		items[i] = obj
	} else {
		x.byKind[key.Kind] = slices.Insert(items, i, obj)
	}
	return previous
}

// Delete removes an object and returns it, nil when there was none.
func (x *Index) Delete(key schema.Key) *schema.Object {
	previous, ok := x.byKey[key]
	if !ok {
		return nil
	}
	delete(x.byKey, key)
	items := x.byKind[key.Kind]
	if i, found := slices.BinarySearchFunc(items, previous, Compare); found {
		x.byKind[key.Kind] = slices.Delete(items, i, i+1)
	}
	return previous
}

// Apply brings the set up to date with one event.
func (x *Index) Apply(ev Event) {
	if ev.Type == Deleted {
		x.Delete(ev.Object.Key())
		return
	}
	x.Put(ev.Object)
}

// List returns the objects in scope, sorted. The slice is the caller's.
func (x *Index) List(scope Scope) []*schema.Object {
	if scope.Kind != nil {
		return slices.Clone(stretch(x.byKind[scope.Kind.Kind], scope))
	}
	items := make([]*schema.Object, 0, len(x.byKey))
	for _, kind := range schema.Kinds() {
		items = append(items, stretch(x.byKind[kind.Kind], scope)...)
	}
	return items
}

// ListBefore returns what List would have returned before the given batches,
// which must be the newest ones, in order, and know the previous states.
func (x *Index) ListBefore(scope Scope, batches []Batch) []*schema.Object {
	undone := map[schema.Key]*schema.Object{}
	for _, b := range slices.Backward(batches) {
		for _, ev := range slices.Backward(b.Events) {
			if key := ev.Object.Key(); scope.Contains(key) {
				undone[key] = ev.Previous
			}
		}
	}
	items := slices.DeleteFunc(x.List(scope), func(o *schema.Object) bool {
		_, ok := undone[o.Key()]
		return ok
	})
	for _, obj := range undone {
		if obj != nil {
			items = append(items, obj)
		}
	}
	slices.SortFunc(items, Compare)
	return items
}

// stretch narrows the sorted objects of one kind to a namespace and a name.
func stretch(items []*schema.Object, scope Scope) []*schema.Object {
	if scope.Namespace == "" {
		return items
	}
	from, _ := slices.BinarySearchFunc(items, scope, func(o *schema.Object, s Scope) int {
		return cmp.Or(compareNamespaces(o.Meta.Namespace, s.Namespace), strings.Compare(o.Meta.Name, s.Name))
	})
	to := from
	for to < len(items) && scope.Contains(items[to].Key()) {
		to++
	}
	return items[from:to]
}
