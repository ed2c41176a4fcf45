package mesh_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// versions is one service of two ports, with ten instances of each of n
// versions.
func versions(t testing.TB, n int) (s *mesh.Snapshot, keys []mesh.ServiceKey) {
	var text strings.Builder
	text.WriteString(`
kind: ServiceEntry
apiVersion: networking.istio.io/v1
metadata: {name: web}
spec:
  hosts: [web.example]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{number: 80, name: http, protocol: HTTP}, {number: 90, name: grpc, protocol: GRPC}]
  endpoints:
`)
	for i := range 10 * n {
		fmt.Fprintf(&text, "  - {address: 10.%d.%d.1, labels: {app: web, version: v%d}}\n", i/250, i%250, i%n)
	}
	s = snapshot(t, text.String())
	svc := s.Service("web.example")
	for _, port := range svc.Ports {
		for i := range n {
			keys = append(keys, mesh.NewServiceKey(svc, port, mesh.Labels{"app": "web", "version": fmt.Sprintf("v%d", i)}))
		}
	}
	return s, keys
}

func TestEndpointsOfVersions(t *testing.T) {
	s, keys := versions(t, 5)
	for _, key := range keys {
		if n := len(s.Endpoints(key)); n != 10 {
			t.Errorf("%s: %d endpoints, want 10", key, n)
		}
	}
}

// BenchmarkEndpoints asks for every version of a service once.
func BenchmarkEndpoints(b *testing.B) {
	for _, n := range []int{1, 10, 100} {
		s, keys := versions(b, n)
		b.Run(fmt.Sprintf("versions=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				for _, key := range keys {
					s.Endpoints(key)
				}
			}
		})
	}
}

// BenchmarkNext is the snapshot after one workload has moved, among so many
// services with one endpoint each.
func BenchmarkNext(b *testing.B) {
	for _, n := range []int{1_000, 10_000} {
		s := mesh.NewSnapshot(1, mesh.DefaultSettings(), services(b, n))
		b.Run(fmt.Sprintf("services=%d", n), func(b *testing.B) {
			was, is := moved(b, s.Objects("WorkloadEntry"), "w2")
			b.ReportAllocs()
			for b.Loop() {
				s = s.Next(s.Revision+1, []schema.Change{{Before: was, After: is}})
				was, is = is, was
			}
		})
	}
}

// moved is one of the objects, and the same with another address.
func moved(tb testing.TB, objs []*schema.Object, name string) (was, is *schema.Object) {
	for _, o := range objs {
		if o.Meta.Name != name {
			continue
		}
		is, err := schema.New(o.Kind, o.Meta, []byte(strings.Replace(string(o.SpecJSON()), `"10.`, `"10.7`, 1)))
		if err != nil {
			tb.Fatal(err)
		}
		return o, is
	}
	tb.Fatalf("no %s", name)
	return nil, nil
}
