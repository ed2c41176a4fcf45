package store

import (
	"cmp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/third_party/forked/golang/btree"

	"github.com/pilot-api/pilot-api/schema"
)

// Compare orders objects as lists do: by group and kind (the order of schema.Kinds),
// then by the text "namespace/name". Kubernetes and etcd's keys have the same order:
// team-a sorts before team.
func Compare(a, b *schema.Object) int {
	return cmp.Or(schema.CompareKinds(a.Kind, b.Kind), compareNames(a, b))
}

// compareNames orders objects of one kind.
func compareNames(a, b *schema.Object) int {
	return cmp.Or(compareNamespaces(a.Key().Namespace, b.Key().Namespace), strings.Compare(a.Meta.Name, b.Meta.Name))
}

func before(a, b *schema.Object) bool { return compareNames(a, b) < 0 }

// compareNamespaces compares namespaces as if each ended in a slash.
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

// Index is a sorted set of objects in memory with one object for each key. The zero
// Index is empty. It is not safe for concurrent use.
//
// The objects of a kind are in a tree, in list order. So a namespace is a contiguous range,
// and the cost of a write grows little with the number of objects.
type Index struct {
	byKey  map[schema.Key]*schema.Object
	byKind map[string]*btree.BTree[*schema.Object]
}

// treeDegree allows up to 127 objects in a node, because lists read them in sequence.
const treeDegree = 64

// Len returns the number of objects.
func (x *Index) Len() int { return len(x.byKey) }

// Get returns the object with a key, or nil if there is none.
func (x *Index) Get(key schema.Key) *schema.Object { return x.byKey[key] }

// Put adds or replaces an object and returns the previous one, if any.
func (x *Index) Put(obj *schema.Object) *schema.Object {
	if x.byKey == nil {
		x.byKey = map[schema.Key]*schema.Object{}
		x.byKind = map[string]*btree.BTree[*schema.Object]{}
	}
	key := obj.Key()
	previous := x.byKey[key]
	x.byKey[key] = obj
	if x.byKind[key.Kind] == nil {
		x.byKind[key.Kind] = btree.New(treeDegree, before)
	}
	x.byKind[key.Kind].ReplaceOrInsert(obj)
	return previous
}

// Delete removes an object and returns it, or nil if there was none.
func (x *Index) Delete(key schema.Key) *schema.Object {
	previous, ok := x.byKey[key]
	if !ok {
		return nil
	}
	delete(x.byKey, key)
	x.byKind[key.Kind].Delete(previous)
	return previous
}

// Apply updates the set with one event.
func (x *Index) Apply(ev Event) {
	if ev.Type == Deleted {
		x.Delete(ev.Object.Key())
		return
	}
	x.Put(ev.Object)
}

// List returns the objects in scope, sorted. The caller owns the slice.
func (x *Index) List(scope Scope) []*schema.Object {
	if scope.Kind != nil {
		return x.appendKind(nil, scope.Kind, scope)
	}
	var items []*schema.Object
	for _, kind := range schema.Kinds() {
		items = x.appendKind(items, kind, scope)
	}
	return items
}

// appendKind appends the objects of one kind that are in scope.
func (x *Index) appendKind(items []*schema.Object, kind *schema.Kind, scope Scope) []*schema.Object {
	tree := x.byKind[kind.Kind]
	if tree == nil {
		return items
	}
	if scope.Namespace == "" {
		items = slices.Grow(items, tree.Len())
	}
	first := &schema.Object{Kind: kind, Meta: metav1.ObjectMeta{Namespace: scope.Namespace, Name: scope.Name}}
	scope.Kind = nil // The tree has only this kind.
	tree.AscendGreaterOrEqual(first, func(o *schema.Object) bool {
		in := scope == Scope{} || scope.Contains(o.Key())
		if in {
			items = append(items, o)
		}
		return in
	})
	return items
}

// ListBefore returns the result of List as it was before the given batches. They must
// be the newest batches, in order, and their events must have the previous states.
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
