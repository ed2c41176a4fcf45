package mesh_test

import (
	"slices"
	"testing"

	"github.com/pilot-api/pilot-api/mesh"
)

func TestResolve(t *testing.T) {
	s := snapshot(t, `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: web, namespace: shop}
spec:
  hosts: [web.shop.svc.cluster.local]
  addresses: [10.0.0.1, 10.9.0.0/16, "2001:db8::1"]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{number: 80, name: http, protocol: HTTP}]
`)
	for domain, hosts := range map[string]map[string][]string{
		"shop.svc.cluster.local": {
			"web":                        {"10.0.0.1", "2001:db8::1"},
			"WEB.shop.svc.cluster.local": {"10.0.0.1", "2001:db8::1"},
			"web.shop.svc":               {"10.0.0.1", "2001:db8::1"},
			"192.0.2.7":                  {"192.0.2.7"},
			"web.books":                  nil,
			"elsewhere.example":          nil,
		},
		"books.svc.cluster.local": {"web": nil, "web.shop": {"10.0.0.1", "2001:db8::1"}},
		"":                        {"web": nil, "web.shop.svc.cluster.local": {"10.0.0.1", "2001:db8::1"}},
	} {
		for host, want := range hosts {
			if got := s.Resolve(mesh.Proxy{Role: mesh.Sidecar, Domain: domain}, host); !slices.Equal(got, want) {
				t.Errorf("%s beside a workload of %q: got %q, want %q", host, domain, got, want)
			}
		}
	}
}
