package mesh_test

import (
	"fmt"
	"testing"

	"github.com/pilot-api/pilot-api/mesh"
)

// TestDomainsThatDiffer: only what objects know of a domain tells proxies apart.
func TestDomainsThatDiffer(t *testing.T) {
	s := snapshot(t, `
kind: ServiceEntry
apiVersion: networking.istio.io/v1
metadata: {name: reviews, namespace: shop}
spec:
  hosts: [reviews.shop.svc.cluster.local, legacy.corp.internal]
  location: MESH_INTERNAL
  resolution: DNS
  ports: [{number: 80, name: http, protocol: HTTP}]
---
kind: ServiceEntry
apiVersion: networking.istio.io/v1
metadata: {name: away, namespace: shop}
spec:
  hosts: [www.example.com]
  location: MESH_EXTERNAL
  resolution: DNS
  exportTo: [partner]
  ports: [{number: 80, name: http, protocol: HTTP}]
`)
	key := func(domain string) string {
		return s.TraitsOf(mesh.Proxy{Role: mesh.Sidecar, IP: "192.0.2.7", Domain: domain}).Key()
	}
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"shop.svc.cluster.local", "other.svc.cluster.local", false},
		{"one.svc.cluster.local", "other.svc.cluster.local", true},
		{"partner.svc.cluster.local", "other.svc.cluster.local", false},
		{"one.svc.cluster.local", "one.svc.cluster.remote", false},
		{"corp.internal", "internal", false},
		{"a.corp.internal", "corp.internal", true},
		{"example.com", "evil.example", true},
		{"", "evil.example", true},
	} {
		if got := key(c.a) == key(c.b); got != c.same {
			t.Errorf("%q and %q: one view is %v, want %v", c.a, c.b, got, c.same)
		}
	}
	views := map[string]bool{}
	for i := range 2000 {
		views[key(fmt.Sprintf("d%d.svc.cluster.local", i))] = true
		views[key(fmt.Sprintf("d%d.example", i))] = true
	}
	if len(views) != 2 {
		t.Errorf("invented domains make %d views", len(views))
	}
}
