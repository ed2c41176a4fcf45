package compile_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/pilot-api/pilot-api/compile"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// teams returns a mesh of services that every namespace sees. Each has a
// VirtualService and a DestinationRule with the given exportTo in the namespace of
// its service.
func teams(t testing.TB, services, namespaces int, exportTo string) []*schema.Object {
	var out []*schema.Object
	for i := range services {
		name, namespace := fmt.Sprintf("service-%04d", i), fmt.Sprintf("team-%03d", i%namespaces)
		host := name + "." + namespace + ".svc.cluster.local"
		var endpoints []spec
		for j := range 4 {
			endpoints = append(endpoints, spec{"address": fmt.Sprintf("10.%d.%d.%d", 1+i/250, i%250, 1+j), "labels": spec{"version": fmt.Sprintf("v%d", j%2)}})
		}
		out = append(out,
			objectIn(t, namespace, "ServiceEntry", name, spec{
				"hosts": []string{host}, "location": "MESH_INTERNAL", "resolution": "STATIC",
				"ports":     []spec{{"number": 80, "name": "http", "protocol": "HTTP"}},
				"endpoints": endpoints,
			}),
			objectIn(t, namespace, "DestinationRule", name, spec{
				"host": host, "exportTo": []string{exportTo}, "subsets": []spec{{"name": "v1", "labels": spec{"version": "v1"}}},
			}),
			objectIn(t, namespace, "VirtualService", name, spec{
				"hosts": []string{host}, "exportTo": []string{exportTo},
				"http": []spec{{"route": []spec{{"destination": spec{"host": host, "subset": "v1"}}}}},
			}))
	}
	return out
}

// teamView returns the view of a proxy without a workload in a namespace of teams.
func teamView(t testing.TB, snap *mesh.Snapshot, n int) mesh.Traits {
	return snap.TraitsOf(proxy(t, fmt.Sprintf("sidecar~10.99.0.1~caller~team-%03d.svc.cluster.local", n)))
}

// TestNamespacesShareWhatIsNotTheirOwn counts results: a further namespace costs what
// its own rules make, however many services and rules the other namespaces have.
func TestNamespacesShareWhatIsNotTheirOwn(t *testing.T) {
	const own = 4 // services of each namespace
	for _, namespaces := range []int{10, 100} {
		snap := mesh.NewSnapshot(1, mesh.DefaultSettings(), teams(t, own*namespaces, namespaces, "."))
		c := compile.NewCompiler()
		c.Advance(snap)
		for n := range 3 {
			c.Proxy(teamView(t, snap, n))
		}
		before := c.Runs()
		c.Proxy(teamView(t, snap, 3))
		if runs := c.Runs() - before; runs > 16*own {
			t.Errorf("a further namespace with %d services among %d computes %d results", own, own*namespaces, runs)
		}
	}
}

// BenchmarkTeams compiles one view in each namespace of a mesh and reports what the
// views take.
func BenchmarkTeams(b *testing.B) {
	for _, exportTo := range []string{".", "*"} {
		for _, size := range []struct{ services, namespaces int }{{1000, 50}, {2000, 50}, {5000, 100}} {
			b.Run(fmt.Sprintf("exportTo=%s/services=%d/namespaces=%d", exportTo, size.services, size.namespaces), func(b *testing.B) {
				snap := mesh.NewSnapshot(1, mesh.DefaultSettings(), teams(b, size.services, size.namespaces, exportTo))
				for b.Loop() {
					before := heap()
					c := compile.NewCompiler()
					c.Advance(snap)
					for n := range size.namespaces {
						c.Proxy(teamView(b, snap, n))
					}
					b.ReportMetric(float64(heap()-before)/(1<<20), "MiB")
					b.ReportMetric(float64(c.Runs()), "results")
					b.ReportMetric(float64(c.Reads()), "reads")
					runtime.KeepAlive(c)
				}
			})
		}
	}
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
