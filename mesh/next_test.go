package mesh_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/internal/meshgen"
	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// TestNextIsAsFromScratch: by whatever changes a snapshot comes about, it is
// the one that all its objects make, also when it comes from one that is not the
// last.
func TestNextIsAsFromScratch(t *testing.T) {
	outside.Slow(t)
	rapid.Check(t, func(rt *rapid.T) {
		settings := mesh.DefaultSettings()
		settings.Networks = meshgen.Networks()
		settings.Budget = rapid.SampledFrom([]mesh.Budget{{}, {Object: 11, Mesh: 100}, {Object: 100, Mesh: 40}, {Object: 20, Mesh: 30}}).Draw(rt, "budget")
		settings.V1Compatibility.ShortNamesByCaller = rapid.Bool().Draw(rt, "short names")
		states := []state{{mesh.NewSnapshot(0, settings, nil), map[schema.Key]*schema.Object{}}}
		for revision := range int64(6) {
			from := states[len(states)-1]
			if rapid.IntRange(0, 7).Draw(rt, "back") == 0 {
				from = rapid.SampledFrom(states).Draw(rt, "from")
			}
			changes, objs := drawChanges(rt, from.objs)
			s := from.Next(revision, changes)
			states = append(states, state{s, objs})
			want := mesh.NewSnapshot(revision, settings, slices.Collect(maps.Values(objs)))
			compare(rt, want, s)
			compareServices(rt, from.Snapshot, s)
			if told, ok := s.ChangesSince(from.Snapshot); !ok || len(told) != len(changes) {
				rt.Fatalf("told %d changes, %v; there were %d", len(told), ok, len(changes))
			}
			if _, ok := want.ChangesSince(from.Snapshot); ok {
				rt.Fatal("a snapshot that came from nothing tells changes since one")
			}
		}
		for _, old := range states {
			compare(rt, mesh.NewSnapshot(old.Revision, settings, slices.Collect(maps.Values(old.objs))), old.Snapshot)
		}
	})
}

// state is a snapshot and the objects that it is of.
type state struct {
	*mesh.Snapshot
	objs map[schema.Key]*schema.Object
}

// drawChanges changes some objects, most of the time a few of them.
func drawChanges(t *rapid.T, before map[schema.Key]*schema.Object) ([]schema.Change, map[schema.Key]*schema.Object) {
	var changes []schema.Change
	objs := maps.Clone(before)
	rarely := rapid.SampledFrom([]int{2, 2, 12}).Draw(t, "rarely")
	for _, o := range drawObjects(t) {
		if rapid.IntRange(0, rarely).Draw(t, "put") == 0 {
			changes = append(changes, schema.Change{Before: before[o.Key()], After: o})
			objs[o.Key()] = o
		}
	}
	for _, key := range slices.SortedFunc(maps.Keys(before), func(a, b schema.Key) int { return strings.Compare(a.String(), b.String()) }) {
		if objs[key] == before[key] && rapid.IntRange(0, 3*rarely).Draw(t, "delete") == 0 {
			changes = append(changes, schema.Change{Before: before[key]})
			delete(objs, key)
		}
	}
	return changes, objs
}

// drawObjects are those of two namespaces, of several ages, whose services are
// for some callers.
func drawObjects(t *rapid.T) []*schema.Object {
	var out []*schema.Object
	for _, namespace := range []string{"default", "a"} {
		for _, o := range meshgen.Objects(t) {
			meta := o.Meta
			meta.Namespace = namespace
			meta.CreationTimestamp = metav1.Unix(rapid.Int64Range(0, 2).Draw(t, "created"), 0)
			spec := o.SpecJSON()
			if o.Kind.Kind == "ServiceEntry" {
				to := rapid.SampledFrom([]string{`["*"]`, `["."]`, `["a"]`, `["~"]`, `["default","a"]`}).Draw(t, "exportTo")
				spec = slices.Concat([]byte(`{"exportTo":`+to+`,`), spec[1:])
			}
			moved, err := schema.New(o.Kind, meta, spec)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, moved)
		}
	}
	return out
}

// compareServices: what a snapshot tells to have changed since another one leads
// from that one's services to its own, and is all that does not stay.
func compareServices(t *rapid.T, before, after *mesh.Snapshot) {
	services := map[string]*mesh.Service{}
	for _, svc := range before.Services {
		services[svc.KeyHost()] = svc
	}
	for _, c := range after.ServicesSince(before) {
		if c.Before == c.After || c.Before != nil && services[c.Before.KeyHost()] != c.Before {
			t.Fatalf("a change from %v to %v is none", c.Before, c.After)
		}
		if c.Before != nil {
			delete(services, c.Before.KeyHost())
		}
		if c.After != nil {
			services[c.After.KeyHost()] = c.After
		}
	}
	if len(services) != len(after.Services) {
		t.Fatalf("%d services after the changes, want %d", len(services), len(after.Services))
	}
	for _, svc := range after.Services {
		if services[svc.KeyHost()] != svc {
			t.Fatalf("%s changed, and nobody told", svc.KeyHost())
		}
	}
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
	for _, namespace := range []string{"default", "a", "b"} {
		if want, got := want.ClosedPorts.In(namespace), got.ClosedPorts.In(namespace); !slices.Equal(want, got) {
			t.Fatalf("in namespace %s %v are closed, want %v", namespace, got, want)
		}
	}
	withinBudget(t, got)
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
	for _, svc := range want.Services {
		for _, namespace := range []string{"default", "a", ""} {
			if diff := cmp.Diff(want.ServiceIn(namespace, svc.Hostname), got.ServiceIn(namespace, svc.Hostname), plain...); diff != "" {
				t.Fatalf("%s as known in %q:\n%s", svc.Hostname, namespace, diff)
			}
		}
		for _, i := range svc.Instances {
			if diff := cmp.Diff(want.InstancesAt(i.Address), got.InstancesAt(i.Address), plain...); diff != "" {
				t.Fatalf("instances at %s:\n%s", i.Address, diff)
			}
			for _, own := range got.InstancesAt(i.Address) {
				if !slices.Contains(got.Services, own.Service) {
					t.Fatalf("at %s there is an instance of a service that is none", i.Address)
				}
			}
		}
	}
	nodes := append([]string{"sidecar~10.1.0.1~x~a.svc.cluster.local", "sidecar~10.1.0.2~x~b.example.com"}, meshgen.Proxies...)
	for _, node := range nodes {
		proxy := meshgen.Proxy(t, node)
		if want.TraitsOf(proxy).Key() != got.TraitsOf(proxy).Key() {
			t.Fatalf("%s has another view", node)
		}
	}
}

// withinBudget: what is built fits, and what is withheld is known and has nothing
// built.
func withinBudget(t *rapid.T, s *mesh.Snapshot) {
	budget, all := s.Settings.BudgetOrDefault(), 0
	built, withheld := map[schema.Key]int{}, map[schema.Key]bool{}
	for _, svc := range s.Services {
		built[svc.Origin] += len(svc.Instances)
		withheld[svc.Origin] = svc.Withheld
	}
	for key, parts := range built {
		if all += parts; parts > budget.Object || withheld[key] && parts > 0 {
			t.Fatalf("%s, withheld: %v, has %d instances with a budget of %+v", key, withheld[key], parts, budget)
		}
	}
	if all > budget.Mesh {
		t.Fatalf("there are %d instances with a budget of %+v", all, budget)
	}
	for _, p := range s.Problems {
		if p.Code == diag.OverBudget && !withheld[schema.Key(p.Object)] && built[schema.Key(p.Object)] > 0 {
			t.Fatalf("%v, and yet it is there", p)
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

// services are n ServiceEntries, and as many WorkloadEntries that half of them
// pick.
func services(t testing.TB, n int) []*schema.Object {
	var text strings.Builder
	for i := range n {
		endpoints := fmt.Sprintf("endpoints: [{address: 10.1.%d.%d}]", i/250, i%250)
		if i%2 == 0 {
			endpoints = fmt.Sprintf("workloadSelector: {labels: {app: a%d}}", i)
		}
		fmt.Fprintf(&text, "---\napiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata: {name: s%d}\n"+
			"spec: {hosts: [s%d.example], location: MESH_INTERNAL, resolution: STATIC, ports: [{number: 80, name: http, protocol: HTTP}], %s}\n", i, i, endpoints)
		fmt.Fprintf(&text, "---\napiVersion: networking.istio.io/v1\nkind: WorkloadEntry\nmetadata: {name: w%d}\n"+
			"spec: {address: 10.2.%d.%d, labels: {app: a%d}}\n", i, i/250, i%250, i)
	}
	return objects(t, text.String())
}

// TestOneEndpoint: an endpoint that comes to one service, inline or by a
// workload, has no other one made again, however many there are.
func TestOneEndpoint(t *testing.T) {
	for _, test := range []struct {
		kind, name, service string
	}{
		{"ServiceEntry", "s1", "s1.example"},
		{"WorkloadEntry", "w2", "s2.example"},
	} {
		allocs := map[int]float64{}
		for _, n := range []int{500, 2000} {
			s := mesh.NewSnapshot(1, mesh.DefaultSettings(), services(t, n))
			was, is := moved(t, s.Objects(test.kind), test.name)
			next := s.Next(2, []schema.Change{{Before: was, After: is}})
			changed := next.ServicesSince(s)
			if len(changed) != 1 || changed[0].After.Hostname != test.service || changed[0].After.Instances[0].Address == changed[0].Before.Instances[0].Address {
				t.Fatalf("%s changes %v", test.name, changed)
			}
			for i, svc := range next.Services {
				if svc != s.Services[i] && svc != changed[0].After {
					t.Errorf("%s is another value", svc.Hostname)
				}
			}
			last, first := next, is
			allocs[n] = testing.AllocsPerRun(20, func() {
				last = last.Next(last.Revision+1, []schema.Change{{Before: first, After: was}})
				first, was = was, first
			})
		}
		if few, many := allocs[500], allocs[2000]; many > 1.2*few {
			t.Errorf("an endpoint of %s takes %.0f allocations among 500 services and %.0f among 2000", test.service, few, many)
		}
	}
}
