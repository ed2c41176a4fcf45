package mesh_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pilot-api/pilot-api/mesh"
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
