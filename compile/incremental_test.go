package compile_test

import (
	"flag"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/pilot-api/pilot-api/compile"
	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/internal/meshgen"
	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

var changes = flag.Int("changes", 6, "how many changes in a row an incremental result is held against one from scratch")

// changing is a mesh whose objects come, go and change.
type changing struct {
	settings *mesh.Settings
	objects  map[schema.Key]*schema.Object
	last     *mesh.Snapshot // nil before the first
	revision int64
}

// change some objects, most of the time a few of them.
func (c *changing) change(rt *rapid.T) {
	drawn := meshgen.Objects(rt)
	most := rapid.SampledFrom([]int{1, 1, 2, 5, 100}).Draw(rt, "most")
	for _, o := range rapid.Permutation(drawn).Draw(rt, "order")[:min(most, len(drawn))] {
		if o.Kind.Kind == "ServiceEntry" && rapid.Bool().Draw(rt, "is of a namespace and of an age") {
			o = aged(rt, o)
		}
		c.objects[o.Key()] = o
	}
	for _, key := range slices.SortedFunc(maps.Keys(c.objects), func(a, b schema.Key) int { return compareText(a, b) }) {
		if rapid.IntRange(0, 12).Draw(rt, "fate") == 0 {
			delete(c.objects, key)
		}
	}
}

// aged is a ServiceEntry of some namespace and age, so that those of several want one
// name or address.
func aged(rt *rapid.T, o *schema.Object) *schema.Object {
	meta := o.Meta
	meta.Namespace = rapid.SampledFrom([]string{schema.DefaultNamespace, "other"}).Draw(rt, "namespace")
	meta.CreationTimestamp = metav1.Unix(rapid.Int64Range(1, 3).Draw(rt, "created"), 0)
	out, err := schema.New(o.Kind, meta, o.SpecJSON())
	if err != nil {
		rt.Fatal(err)
	}
	return out
}

func compareText(a, b fmt.Stringer) int {
	switch {
	case a.String() < b.String():
		return -1
	case a.String() > b.String():
		return 1
	}
	return 0
}

// snapshot of the mesh as it is, from scratch.
func (c *changing) snapshot() *mesh.Snapshot {
	return mesh.NewSnapshot(c.revision, c.settings, slices.Collect(maps.Values(c.objects)))
}

// next is the snapshot after the last one, most of the time one that came from
// it.
func (c *changing) next(rt *rapid.T) *mesh.Snapshot {
	c.revision++
	if c.last == nil || rapid.IntRange(0, 3).Draw(rt, "anew") == 0 {
		c.last = c.snapshot()
		return c.last
	}
	gone := map[schema.Key]*schema.Object{}
	for _, kind := range schema.Kinds() {
		for _, o := range c.last.Objects(kind.Kind) {
			gone[o.Key()] = o
		}
	}
	var changes []schema.Change
	for key, o := range c.objects {
		if gone[key] != o {
			changes = append(changes, schema.Change{Before: gone[key], After: o})
		}
		delete(gone, key)
	}
	for _, o := range gone {
		changes = append(changes, schema.Change{Before: o})
	}
	c.last = c.last.Next(c.revision, changes)
	return c.last
}

// TestIncrementalIsAsFromScratch: whatever changes, in whatever steps, what
// comes out is what a compiler that knows nothing makes of the same snapshot,
// and what equals the last result is the last result.
func TestIncrementalIsAsFromScratch(t *testing.T) {
	outside.Slow(t)
	rapid.Check(t, func(rt *rapid.T) {
		settings := mesh.DefaultSettings()
		settings.ProxyHTTPPort = rapid.SampledFrom([]int{0, 15002}).Draw(rt, "proxy port")
		settings.DefaultVisibility = rapid.SampledFrom([]mesh.Visibility{mesh.VisibleToAll, mesh.VisibleInside}).Draw(rt, "visibility")
		settings.OutboundTrafficPolicy = rapid.SampledFrom([]mesh.OutboundMode{mesh.AllowAny, mesh.RegistryOnly}).Draw(rt, "unknown")
		settings.V1Compatibility = drawPilot(rt)
		settings.Budget = rapid.SampledFrom([]mesh.Budget{{}, {}, {Object: 22, Mesh: 60}, {Object: 11, Mesh: 30}}).Draw(rt, "budget")
		if rapid.Bool().Draw(rt, "networks") {
			settings.Networks = meshgen.Networks()
		}
		c := &changing{settings: settings, objects: map[schema.Key]*schema.Object{}}
		compiler := compile.NewCompiler()
		last, lastProblems := map[string]*ir.Config{}, map[string]diag.List{}
		for range *changes {
			c.change(rt)
			s, scratch := c.next(rt), c.snapshot()
			compiler.Advance(s)
			concerned := compiler.Concerned()
			c.sameReferences(rt, compiler, scratch)
			c.sameProblems(rt, compiler)
			for _, node := range meshgen.Proxies {
				if rapid.IntRange(0, 3).Draw(rt, "asks") == 0 {
					continue
				}
				traits := s.TraitsOf(proxy(t, node))
				got, own := compiler.Proxy(traits)
				problems := slices.Concat(compiler.Problems(), own)
				want, wantProblems := compile.Proxy(scratch, scratch.TraitsOf(proxy(t, node)))
				if diff := difference(want, got); diff != "" {
					rt.Fatalf("%s, from scratch (-) and from what there was (+):\n%s", node, diff)
				}
				if diff := cmp.Diff(byObject(wantProblems), byObject(problems)); diff != "" {
					rt.Fatalf("%s, problems from scratch (-) and from what there was (+):\n%s", node, diff)
				}
				before := last[traits.Key()]
				if before != nil && before != got && reflect.DeepEqual(before, got) {
					rt.Fatalf("%s: an equal configuration is another value", node)
				}
				if before != nil && !slices.Contains(concerned, traits.Key()) && (before != got || !slices.Equal(own, lastProblems[traits.Key()])) {
					rt.Fatalf("%s: the change did not concern its view, and it is another one", node)
				}
				last[traits.Key()], lastProblems[traits.Key()] = got, own
				if rapid.IntRange(0, 9).Draw(rt, "goes") == 0 {
					compiler.Release(traits.Key(), unwanted)
					delete(last, traits.Key())
				}
			}
		}
	})
}

// sameReferences asks about one of the objects.
func (c *changing) sameReferences(rt *rapid.T, compiler *compile.Compiler, s *mesh.Snapshot) {
	keys := slices.SortedFunc(maps.Keys(c.objects), func(a, b schema.Key) int { return compareText(a, b) })
	if len(keys) == 0 {
		return
	}
	key := rapid.SampledFrom(keys).Draw(rt, "referred")
	scratch := compile.NewCompiler()
	scratch.Advance(s)
	if diff := cmp.Diff(scratch.References(key), compiler.References(key)); diff != "" {
		rt.Fatalf("%s, references from scratch (-) and from what there was (+):\n%s", key, diff)
	}
}

// sameProblems asks about some of the objects, one of which may not be there.
func (c *changing) sameProblems(rt *rapid.T, compiler *compile.Compiler) {
	asked := map[diag.Ref]bool{{Kind: "RouteRule", Namespace: "default", Name: "nobody"}: true}
	for key := range c.objects {
		if rapid.Bool().Draw(rt, "asked") {
			asked[key.Ref()] = true
		}
	}
	got, want := compiler.ProblemsOf(asked), compiler.Problems()
	want = slices.DeleteFunc(slices.Clone(want), func(p diag.Problem) bool { return !asked[p.Object] })
	if want, got = byObject(want), byObject(got); !slices.Equal(want, got) {
		rt.Fatalf("problems among all (-) and of %d objects (+):\n%s", len(asked), cmp.Diff(want, got))
	}
}

func byObject(l diag.List) diag.List {
	out := slices.Clone(l)
	slices.SortStableFunc(out, func(a, b diag.Problem) int { return compareText(a.Object, b.Object) })
	return out
}

// TestUnchangedPartsAreTheSame: of a mesh in which one rule changes, all that the
// rule has no part in stays the same value.
func TestUnchangedPartsAreTheSame(t *testing.T) {
	const n = 50
	objs := largeMesh(t, n)
	compiler, settings := compile.NewCompiler(), mesh.DefaultSettings()
	config := func(revision int64, objs []*schema.Object) *ir.Config {
		s := mesh.NewSnapshot(revision, settings, objs)
		compiler.Advance(s)
		config, _ := compiler.Proxy(s.TraitsOf(proxy(t, largeMeshCaller)))
		return config
	}
	before := config(1, objs)
	if again := config(2, slices.Clone(objs)); again != before {
		t.Error("nothing changed, and there is another configuration")
	}
	objs[7] = object(t, "RouteRule", objs[7].Meta.Name, spec{"destination": spec{"name": objs[7].Meta.Name}, "rewrite": spec{"uri": "/other"}})
	after := config(3, objs)
	if after == before {
		t.Fatal("the rule has no effect")
	}
	hosts := 0
	for i, table := range after.RouteTables {
		for j, host := range table.VirtualHosts {
			if host != before.RouteTables[i].VirtualHosts[j] {
				hosts++
			}
		}
	}
	if hosts != 2 { // One for each port of the service.
		t.Errorf("%d virtual hosts are others, want 2", hosts)
	}
	known := map[*ir.Cluster]bool{}
	for _, c := range before.Clusters {
		known[c] = true
	}
	for _, c := range after.Clusters {
		if !known[c] {
			t.Errorf("cluster %s is another value", c.Name)
		}
	}
	for i, l := range after.Listeners {
		if l != before.Listeners[i] {
			t.Errorf("listener %s is another value", l.Address())
		}
	}
}

// TestViewsShare: what is the same to callers of two namespaces is one value.
func TestViewsShare(t *testing.T) {
	objs := largeMesh(t, 20)
	for _, namespace := range []string{"one", "two"} {
		objs = append(objs, inNamespace(t, object(t, "DestinationRule", "of", spec{"host": "nobody.example", "exportTo": []string{"."}}), namespace))
	}
	compiler := compile.NewCompiler()
	var last *ir.Config
	for revision := range int64(3) {
		objs[1] = object(t, "RouteRule", objs[1].Meta.Name, spec{"destination": spec{"name": objs[1].Meta.Name}, "rewrite": spec{"uri": fmt.Sprint("/", revision)}})
		s := mesh.NewSnapshot(revision, mesh.DefaultSettings(), objs)
		compiler.Advance(s)
		one, _ := compiler.Proxy(s.TraitsOf(proxy(t, "sidecar~10.99.0.1~a~one.svc.cluster.local")))
		two, _ := compiler.Proxy(s.TraitsOf(proxy(t, "sidecar~10.99.0.2~b~two.svc.cluster.local")))
		if one == two {
			t.Fatal("two namespaces have one view")
		}
		if !slices.Equal(one.RouteTables, two.RouteTables) || !slices.Equal(one.Clusters, two.Clusters) {
			t.Errorf("at %d the tables or clusters are other values", revision)
		}
		if one == last {
			t.Errorf("the change of %d has no effect", revision)
		}
		last = one
	}
}

// TestEndpointsConcernNobody: instances of services inside the mesh come and go,
// and no configuration is made again.
func TestEndpointsConcernNobody(t *testing.T) {
	objs := largeMesh(t, 20)
	compiler, settings := compile.NewCompiler(), mesh.DefaultSettings()
	config := func(revision int64, objs []*schema.Object) *ir.Config {
		s := mesh.NewSnapshot(revision, settings, objs)
		compiler.Advance(s)
		config, _ := compiler.Proxy(s.TraitsOf(proxy(t, largeMeshCaller)))
		return config
	}
	before := config(1, objs)
	runs := compiler.Runs()
	objs = append(objs, object(t, "WorkloadEntry", "more", spec{"address": "10.77.0.1", "labels": spec{"app": "x"}}))
	for i, o := range objs {
		if o.Kind.Kind == "ServiceEntry" {
			spec := decoded(t, o)
			spec["endpoints"] = spec["endpoints"].([]any)[:3]
			objs[i] = object(t, "ServiceEntry", o.Meta.Name, spec)
			break
		}
	}
	if config(2, objs) != before {
		t.Error("one instance less made another configuration")
	}
	if n := compiler.Runs() - runs; n > 0 {
		t.Errorf("%d results were computed again", n)
	}
}

// unwanted is for who lets go of a view that nobody has.
func unwanted() bool { return false }

// TestReleased: of views that nobody has any more nothing is left, whatever
// domains they were for.
func TestReleased(t *testing.T) {
	s := mesh.NewSnapshot(1, byCallerSettings(), manyNamespaces(t, 5))
	compiler := compile.NewCompiler()
	compiler.Advance(s)
	size := compiler.Size()
	for i := range 20 {
		traits := s.TraitsOf(proxy(t, fmt.Sprintf("sidecar~10.99.0.1~caller~made-up-%d.example", i)))
		traits.Domain = fmt.Sprintf("made-up-%d.example", i)
		compiler.Proxy(traits)
		if compiler.Size() == size {
			t.Fatal("a view takes no room")
		}
		compiler.Release(traits.Key(), unwanted)
		if compiler.Size() != size {
			t.Fatalf("%d values before the view and %d after it", size, compiler.Size())
		}
	}
}
