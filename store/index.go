package store

import (
	"cmp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/third_party/forked/golang/btree"

	"github.com/pilot-api/pilot-api/schema"
)

// Compare orders objects as lists do: by group and kind (the order of
// schema.Kinds), then by "namespace/name" as a text. That is the order of
// Kubernetes, and of keys in etcd: team-a stands before team.
func Compare(a, b *schema.Object) int {
	return cmp.Or(compareKinds(a.Kind, b.Kind), compareNames(a, b))
}

// compareNames orders objects of one kind.
func compareNames(a, b *schema.Object) int {
	return cmp.Or(compareNamespaces(a.Meta.Namespace, b.Meta.Namespace), strings.Compare(a.Meta.Name, b.Meta.Name))
}

func before(a, b *schema.Object) bool { return compareNames(a, b) < 0 }

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
// The objects of a kind lie in a tree, in the order of lists, so that a namespace
// is a stretch of it and a write costs no more where there are many.
type Index struct {
	byKey  map[schema.Key]*schema.Object
	byKind map[string]*btree.BTree[*schema.Object]
}

// treeDegree makes nodes of up to 127 objects: lists read them one after the other.
const treeDegree = 64

// Len is the number of objects.
func (x *Index) Len() int { return len(x.byKey) }

// Get returns nil when there is no such object.
func (x *Index) Get(key schema.Key) *schema.Object { return x.byKey[key] }

// Put adds or replaces an object and returns the one before, if any.
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

// Delete removes an object and returns it, nil when there was none.
func (x *Index) Delete(key schema.Key) *schema.Object {
	previous, ok := x.byKey[key]
	if !ok {
		return nil
	}
	delete(x.byKey, key)
	x.byKind[key.Kind].Delete(previous)
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
		return x.appendKind(nil, scope.Kind, scope)
	}
	var items []*schema.Object
	for _, kind := range schema.Kinds() {
		items = x.appendKind(items, kind, scope)
	}
	return items
}

// appendKind appends what is in scope of one kind.
func (x *Index) appendKind(items []*schema.Object, kind *schema.Kind, scope Scope) []*schema.Object {
	tree := x.byKind[kind.Kind]
	if tree == nil {
		return items
	}
	if scope.Namespace == "" {
		items = slices.Grow(items, tree.Len())
	}
	first := &schema.Object{Kind: kind, Meta: metav1.ObjectMeta{Namespace: scope.Namespace, Name: scope.Name}}
	scope.Kind = nil // It is that of the tree.
	tree.AscendGreaterOrEqual(first, func(o *schema.Object) bool {
		in := scope == Scope{} || scope.Contains(o.Key())
		if in {
			items = append(items, o)
		}
		return in
	})
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
