package store_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
	"github.com/pilot-api/pilot-api/store/storetest"
)

func keysOf(objs []*schema.Object) []string {
	out := []string{}
	for _, o := range objs {
		out = append(out, o.Key().String()+"@"+o.Meta.ResourceVersion)
	}
	return out
}

// TestIndexIsASortedMap compares the index with a simple reference implementation over
// random puts and deletes, then undoes all of them step by step.
func TestIndexIsASortedMap(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var index store.Index
		model := map[schema.Key]*schema.Object{}
		var batches []store.Batch
		past := [][]string{keysOf(sorted(model))}
		for r := range rapid.IntRange(1, 30).Draw(rt, "steps") {
			obj := drawObject(t, rt, int64(r+1))
			ev := store.Event{Type: store.Modified, Object: obj, Previous: model[obj.Key()]}
			if rapid.Bool().Draw(rt, "delete") {
				ev.Type = store.Deleted
				delete(model, obj.Key())
			} else {
				model[obj.Key()] = obj
			}
			index.Apply(ev)
			batches = append(batches, store.Batch{Revision: int64(r + 1), Events: []store.Event{ev}})
			past = append(past, keysOf(sorted(model)))
		}
		for r, want := range past {
			if diff := cmp.Diff(want, keysOf(index.ListBefore(store.Scope{}, batches[r:]))); diff != "" {
				rt.Fatalf("before step %d (-want +got):\n%s", r, diff)
			}
		}
		checkScopes(rt, &index, sorted(model))
	})
}

func drawObject(t *testing.T, rt *rapid.T, revision int64) *schema.Object {
	namespace := rapid.SampledFrom([]string{"a", "a-b", "b"}).Draw(rt, "namespace")
	name := fmt.Sprintf("n%d", rapid.IntRange(0, 4).Draw(rt, "name"))
	obj := storetest.Rule(t, namespace, name, 1)
	if rapid.Bool().Draw(rt, "service") {
		obj = storetest.Service(t, namespace, name)
	}
	return obj.AtRevision(revision)
}

func sorted(model map[schema.Key]*schema.Object) []*schema.Object {
	var objs []*schema.Object
	for _, obj := range model {
		objs = append(objs, obj)
	}
	slices.SortFunc(objs, store.Compare)
	return objs
}

func checkScopes(rt *rapid.T, index *store.Index, all []*schema.Object) {
	for _, kind := range slices.Concat(schema.Kinds(), []*schema.Kind{nil}) {
		for _, namespace := range []string{"", "a", "a-b", "c"} {
			scope := store.Scope{Kind: kind, Namespace: namespace}
			var want []*schema.Object
			for _, obj := range all {
				if scope.Contains(obj.Key()) {
					want = append(want, obj)
				}
			}
			if diff := cmp.Diff(keysOf(want), keysOf(index.List(scope))); diff != "" {
				rt.Fatalf("scope %+v (-want +got):\n%s", scope, diff)
			}
		}
	}
}
