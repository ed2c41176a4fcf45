package mesh_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/pilot-api/pilot-api/internal/meshgen"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// TestNextIsAsFromScratch: by whatever changes a snapshot comes about, it is
// the one that all its objects make.
func TestNextIsAsFromScratch(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		settings := mesh.DefaultSettings()
		objs := map[schema.Key]*schema.Object{}
		s := mesh.NewSnapshot(0, settings, nil)
		for revision := range int64(6) {
			var changes []schema.Change
			for _, o := range meshgen.Objects(rt) {
				if rapid.IntRange(0, 2).Draw(rt, "put") == 0 {
					changes = append(changes, schema.Change{Before: objs[o.Key()], After: o})
					objs[o.Key()] = o
				}
			}
			for _, key := range slices.SortedFunc(maps.Keys(objs), func(a, b schema.Key) int { return compareText(a.String(), b.String()) }) {
				put := slices.ContainsFunc(changes, func(c schema.Change) bool { return c.Key() == key })
				if !put && rapid.IntRange(0, 5).Draw(rt, "delete") == 0 {
					changes = append(changes, schema.Change{Before: objs[key]})
					delete(objs, key)
				}
			}
			before := s
			s = before.Next(revision, changes)
			want := mesh.NewSnapshot(revision, settings, slices.Collect(maps.Values(objs)))
			compare(rt, want, s)
			if told, ok := s.ChangesSince(before); !ok || len(told) != len(changes) {
				rt.Fatalf("told %d changes, %v; there were %d", len(told), ok, len(changes))
			}
			if _, ok := want.ChangesSince(before); ok {
				rt.Fatal("a snapshot that came from nothing tells changes since one")
			}
		}
	})
}

func compareText(a, b string) int {
	if a < b {
		return -1
	}
	return 1
}

// compare what a snapshot answers.
func compare(t *rapid.T, want, got *mesh.Snapshot) {
	for _, kind := range schema.Kinds() {
		if !slices.Equal(want.Objects(kind.Kind), got.Objects(kind.Kind)) {
			t.Fatalf("objects of kind %s differ", kind.Kind)
		}
	}
	plain := []cmp.Option{cmpopts.IgnoreUnexported(mesh.Service{}), cmpopts.IgnoreFields(mesh.Instance{}, "Service")}
	if diff := cmp.Diff(want.Services, got.Services, plain...); diff != "" {
		t.Fatalf("services from scratch (-) and after a change (+):\n%s", diff)
	}
	if diff := cmp.Diff(want.Problems, got.Problems); diff != "" {
		t.Fatalf("problems from scratch (-) and after a change (+):\n%s", diff)
	}
	for i, svc := range want.Services {
		if svc.KeyHost() != got.Services[i].KeyHost() || !svc.SameShape(got.Services[i]) {
			t.Fatalf("%s is of another shape", svc.Hostname)
		}
		for _, port := range svc.Ports {
			key := mesh.NewServiceKey(svc, port, nil)
			if diff := cmp.Diff(want.Endpoints(key), got.Endpoints(key), plain...); diff != "" {
				t.Fatalf("endpoints of %s:\n%s", key, diff)
			}
		}
	}
	for _, node := range meshgen.Nodes {
		proxy, err := mesh.ParseProxy(node)
		if err != nil {
			t.Fatal(err)
		}
		if want.View(proxy).Key() != got.View(proxy).Key() {
			t.Fatalf("%s has another view", node)
		}
	}
}

// TestNextSharesTheRegistry: what is no service and no workload leaves all of
// them as they are.
func TestNextSharesTheRegistry(t *testing.T) {
	s := mesh.NewSnapshot(1, mesh.DefaultSettings(), nil)
	rule := objects(t, "apiVersion: config.istio.io/v1alpha2\nkind: RouteRule\nmetadata: {name: any}\nspec: {destination: {name: a}}")[0]
	next := s.Next(2, []schema.Change{{After: rule}})
	if len(next.Objects("RouteRule")) != 1 || next.Revision != 2 {
		t.Fatalf("the rule is not there: %+v", next)
	}
	if n := testing.AllocsPerRun(10, func() { next.Next(3, []schema.Change{{Before: rule, After: rule}}) }); n > 60 {
		t.Errorf("one changed rule takes %.0f allocations", n)
	}
}
