package compile_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pilot-api/pilot-api/compile"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// manyNamespaces is n services, five to a namespace, each with a VirtualService
// and a DestinationRule that name it in full; every other one's requests go on
// by the short name, which other namespaces would complete with their own.
func manyNamespaces(t testing.TB, n int) []*schema.Object {
	var out []*schema.Object
	for i := range n {
		name, namespace := fmt.Sprintf("service-%04d", i), fmt.Sprintf("team-%03d", i/5)
		host := name + "." + namespace + ".svc.cluster.local"
		to := host
		if i%2 == 1 {
			to = name
		}
		out = append(out,
			objectIn(t, namespace, "ServiceEntry", name, spec{
				"hosts": []string{host}, "location": "MESH_INTERNAL", "resolution": "STATIC",
				"ports":     []spec{{"number": 80, "name": "http", "protocol": "HTTP"}},
				"endpoints": []spec{{"address": fmt.Sprintf("10.%d.%d.1", 1+i/250, i%250), "labels": spec{"version": "v1"}}},
			}),
			objectIn(t, namespace, "DestinationRule", name, spec{
				"host": host, "subsets": []spec{{"name": "v1", "labels": spec{"version": "v1"}}},
			}),
			objectIn(t, namespace, "VirtualService", name, spec{
				"hosts": []string{host},
				"http":  []spec{{"route": []spec{{"destination": spec{"host": to, "subset": "v1"}}}}},
			}))
	}
	return out
}

// byCaller has short names completed by each caller.
var byCaller = mesh.V1Compatibility{ShortNamesByCaller: true, UnknownSubsetIsAll: true, SubsetsByLabels: true}

func byCallerSettings() *mesh.Settings {
	s := mesh.DefaultSettings()
	s.V1Compatibility = byCaller
	return s
}

// manyNamespacesCaller is at home in the first of them.
const manyNamespacesCaller = "sidecar~10.99.0.1~caller~team-000.svc.cluster.local"

func TestManyNamespaces(t *testing.T) {
	const n = 20
	config, problems := compiledAs(t, byCaller, manyNamespacesCaller, manyNamespaces(t, n))
	if len(problems) > 0 {
		t.Error(problems)
	}
	// Of the short names, two mean something to this caller.
	versions := 0
	for _, c := range config.Clusters {
		if strings.HasSuffix(c.Name, "|version=v1") {
			versions++
		}
	}
	if found := len(outboundClusters(config)); found != n || versions != n/2+2 {
		t.Errorf("want %d clusters, %d of them of a version, found %d and %d", n, n/2+2, found, versions)
	}
}

// TestWorkIsLinearInNamespaces counts allocations: eight times the mesh takes
// eight times as many, where a plan for each namespace took sixty-four times.
func TestWorkIsLinearInNamespaces(t *testing.T) {
	node := proxy(t, manyNamespacesCaller)
	allocations := func(n int) float64 {
		objs := manyNamespaces(t, n)
		return testing.AllocsPerRun(1, func() {
			s := mesh.NewSnapshot(1, byCallerSettings(), objs)
			compile.Proxy(s, s.TraitsOf(node))
		})
	}
	if small, large := allocations(50), allocations(400); large > 10*small {
		t.Errorf("8 times the services and namespaces take %.1f times the allocations", large/small)
	}
}

// BenchmarkNamespaces compiles one view of a mesh of many namespaces: as the
// first of its snapshot, and as a further one.
func BenchmarkNamespaces(b *testing.B) {
	for _, n := range []int{10, 100, 1000, 4000} {
		benchmarkProxy(b, n, manyNamespacesCaller, manyNamespaces(b, n))
	}
}
