package compile_test

import (
	"fmt"
	"testing"

	"github.com/pilot-api/pilot-api/compile"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// largeMesh is n services of two HTTP ports and four instances, each with one
// rule: a cookie and a prefix, a split, a timeout.
func largeMesh(t testing.TB, n int) []*schema.Object {
	var out []*schema.Object
	for i := range n {
		name := fmt.Sprintf("service-%04d", i)
		var eps []spec
		for j := range 4 {
			eps = append(eps, spec{
				"address": fmt.Sprintf("10.%d.%d.%d", 1+i/250, i%250, 1+j),
				"labels":  map[string]string{"version": fmt.Sprintf("v%d", j%2)},
			})
		}
		out = append(out,
			object(t, "ServiceEntry", name, spec{
				"hosts": []string{name + ".default.svc.cluster.local"}, "location": "MESH_INTERNAL", "resolution": "STATIC",
				"addresses": []string{fmt.Sprintf("10.200.%d.%d", i/250, i%250)},
				"ports": []spec{
					{"number": 80, "name": "http", "protocol": "HTTP"},
					{"number": 81, "name": "http-status", "protocol": "HTTP"},
				},
				"endpoints": eps,
			}),
			object(t, "RouteRule", name, spec{
				"destination": spec{"name": name},
				"match": spec{"request": spec{"headers": spec{
					"cookie": spec{"regex": "^(.*?;)?(user=test)(;.*)?$"},
					"uri":    spec{"prefix": "/api"},
				}}},
				"route": []spec{
					{"labels": spec{"version": "v0"}, "weight": 90},
					{"labels": spec{"version": "v1"}, "weight": 10},
				},
				"httpReqTimeout": spec{"simpleTimeout": spec{"timeout": "5s"}},
			}))
	}
	return out
}

// largeMeshCaller has no instances, as most proxies see most services.
const largeMeshCaller = "sidecar~10.99.0.1~caller~default.svc.cluster.local"

func TestLargeMesh(t *testing.T) {
	const n = 10
	config := faultless(t, largeMeshCaller, largeMesh(t, n))
	// Each port has a cluster for all instances and one for each version.
	if got, want := len(outboundClusters(config)), n*2*3; got != want {
		t.Errorf("want %d clusters, found %d", want, got)
	}
}

// BenchmarkProxy compiles one view: as the first of its snapshot, which pays
// for the plan, and as a further one.
func BenchmarkProxy(b *testing.B) {
	for _, n := range []int{10, 100, 1000} {
		benchmarkProxy(b, n, largeMeshCaller, largeMesh(b, n))
	}
}

func benchmarkProxy(b *testing.B, n int, caller string, objs []*schema.Object) {
	node := proxy(b, caller)
	b.Run(fmt.Sprintf("first/S=%d", n), func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			b.StopTimer()
			s := mesh.NewSnapshot(1, mesh.DefaultSettings(), objs)
			b.StartTimer()
			compile.Proxy(s, s.TraitsOf(node))
		}
	})
	b.Run(fmt.Sprintf("further/S=%d", n), func(b *testing.B) {
		s := mesh.NewSnapshot(1, mesh.DefaultSettings(), objs)
		compile.Proxy(s, s.TraitsOf(node))
		b.ReportAllocs()
		for b.Loop() {
			compile.Proxy(s, s.TraitsOf(node))
		}
	})
}

// BenchmarkSnapshot builds the model from objects whose specs are decoded, as
// those of a running server are.
func BenchmarkSnapshot(b *testing.B) {
	for _, n := range []int{10, 100, 1000} {
		objs := largeMesh(b, n)
		b.Run(fmt.Sprintf("S=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				mesh.NewSnapshot(1, mesh.DefaultSettings(), objs)
			}
		})
	}
}

// BenchmarkChange compiles 100 views of a mesh in which one rule has changed:
// those of proxies in one namespace, or each in its own.
func BenchmarkChange(b *testing.B) {
	for _, n := range []int{1000, 10_000} {
		for _, namespaces := range []int{1, 100} {
			b.Run(fmt.Sprintf("services=%d/namespaces=%d", n, namespaces), func(b *testing.B) { benchmarkChange(b, n, namespaces) })
		}
	}
}

func benchmarkChange(b *testing.B, n, namespaces int) {
	objs := largeMesh(b, n)
	for i := range namespaces {
		objs = append(objs, inNamespace(b, object(b, "DestinationRule", "of", spec{"host": "nobody.example", "exportTo": []string{"."}}), fmt.Sprintf("space-%d", i)))
	}
	s := mesh.NewSnapshot(1, mesh.DefaultSettings(), objs)
	compiler := compile.NewCompiler()
	compiler.Advance(s)
	ask := func() {
		for i := range 100 {
			traits := s.TraitsOf(proxy(b, fmt.Sprintf("sidecar~10.%d.0.1~p.x~space-%d.svc.cluster.local", 1+i%4, i%namespaces)))
			compiler.Proxy(traits)
		}
	}
	ask()
	last, changes := objs[1], 0
	b.ReportAllocs()
	for b.Loop() {
		changes++
		next := object(b, "RouteRule", last.Meta.Name, spec{
			"destination": spec{"name": last.Meta.Name}, "rewrite": spec{"uri": fmt.Sprintf("/%d", changes)},
		})
		s = s.Next(int64(changes+1), []schema.Change{{Before: last, After: next}})
		last = next
		compiler.Advance(s)
		ask()
	}
}

func inNamespace(tb testing.TB, o *schema.Object, namespace string) *schema.Object {
	tb.Helper()
	meta := o.Meta
	meta.Namespace = namespace
	moved, err := schema.New(o.Kind, meta, o.SpecJSON())
	if err != nil {
		tb.Fatal(err)
	}
	return moved
}
