package traffic_test

import (
	"crypto/tls"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/pilot-api/pilot-api/envoy/envoytest"
	"github.com/pilot-api/pilot-api/mesh"
)

// TestWhoOwnsWhat checks that a younger object of another namespace takes no request and no
// connection from an older object, by address, block, name or server name.
func TestWhoOwnsWhat(t *testing.T) {
	own, taker := envoytest.StartBackend(t, "own"), envoytest.StartBackend(t, "taker")
	secure := httptest.NewTLSServer(&envoytest.Backend{Name: "named"})
	t.Cleanup(secure.Close)
	precise := httptest.NewTLSServer(&envoytest.Backend{Name: "precise"})
	t.Cleanup(precise.Close)
	e := startCompiled(t, mesh.DefaultSettings(), callerNode, fmt.Sprintf(`
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: shop, creationTimestamp: "2001-01-01T00:00:00Z"}
spec:
  hosts: [shop.default.svc.cluster.local]
  addresses: [10.20.0.8]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{number: 80, name: http, protocol: HTTP}]
  endpoints: [{address: 127.0.0.1, ports: {http: %[1]d}}]
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: net, creationTimestamp: "2001-01-01T00:00:00Z"}
spec:
  hosts: [zz.net.example.com]
  addresses: [10.21.0.0/16]
  resolution: STATIC
  ports: [{number: 3306, name: tcp, protocol: TCP}]
  endpoints: [{address: 127.0.0.1, ports: {tcp: %[1]d}}]
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: named, creationTimestamp: "2001-01-01T00:00:00Z"}
spec:
  hosts: [zz.named.example.com]
  resolution: STATIC
  ports: [{number: 443, name: tls, protocol: TLS}]
  endpoints: [{address: 127.0.0.1, ports: {tls: %[3]d}}]
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: wide, creationTimestamp: "2001-01-01T00:00:00Z"}
spec:
  hosts: ["*.wide.example.com"]
  resolution: STATIC
  ports: [{number: 443, name: tls, protocol: TLS}]
  endpoints: [{address: 127.0.0.1, ports: {tls: %[3]d}}]
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: db, namespace: data, creationTimestamp: "2002-01-01T00:00:00Z"}
spec:
  hosts: [db.wide.example.com]
  addresses: [10.70.0.1]
  resolution: STATIC
  ports: [{number: 443, name: tls, protocol: TLS}]
  endpoints: [{address: 127.0.0.1, ports: {tls: %[4]d}}]
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: raw, namespace: evil, creationTimestamp: "2002-01-01T00:00:00Z"}
spec:
  hosts: [aa.raw.example]
  addresses: [10.20.0.8, 10.21.0.5, 10.50.0.0/16, 10.60.0.1]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{number: 80, name: tcp, protocol: TCP}, {number: 3306, name: tcp-db, protocol: TCP}, {number: 443, name: tcp-tls, protocol: TCP}]
  endpoints: [{address: 127.0.0.1, ports: {tcp: %[2]d, tcp-db: %[2]d, tcp-tls: %[2]d}}]
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: names, namespace: evil, creationTimestamp: "2002-01-01T00:00:00Z"}
spec:
  hosts: [shop, shop.default, shop.default.svc, aa.evil.svc.cluster.local]
  addresses: [10.20.0.8]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{number: 80, name: http, protocol: HTTP}, {number: 3306, name: http-db, protocol: HTTP}]
  endpoints: [{address: 127.0.0.1, ports: {http: %[2]d, http-db: %[2]d}}]
`, own.Port(), taker.Port(), envoytest.Port(secure), envoytest.Port(precise)))
	for _, test := range []struct {
		ip         string
		port       int
		host, want string
	}{
		{"10.20.0.8", 80, "shop", "own shop /"},
		{"10.20.0.8", 80, "shop.default", "own shop.default /"},
		{"10.20.0.8", 80, "shop.default.svc", "own shop.default.svc /"},
		{"10.20.0.8", 80, "10.20.0.8", "own 10.20.0.8 /"},
		{"203.0.113.1", 80, "aa.evil.svc.cluster.local", "taker aa.evil.svc.cluster.local /"},
		{"10.60.0.1", 80, "x", "taker x /"},
		{"10.21.0.5", 3306, "aa.evil.svc.cluster.local", "own aa.evil.svc.cluster.local /"},
		{"10.21.7.7", 3306, "x", "own x /"},
		{"203.0.113.1", 3306, "aa.evil.svc.cluster.local", "taker aa.evil.svc.cluster.local /"},
		{"10.60.0.1", 3306, "x", "taker x /"},
		{"10.50.0.1", 443, "x", "taker x /"},
	} {
		if answer := envoytest.Exchange(t, e.Captured(test.ip, test.port), envoytest.Get(test.host, "/")); !strings.Contains(answer, test.want) {
			t.Errorf("%s:%d for %s: want %q, found %q", test.ip, test.port, test.host, test.want, answer)
		}
	}
	for _, test := range []struct{ ip, name, want string }{
		{"10.50.0.1", "zz.named.example.com", "named"},
		{"10.60.0.1", "zz.named.example.com", "named"},
		{"10.99.0.1", "zz.named.example.com", "named"},
		// A host comes before a wildcard, even an older one.
		{"10.70.0.1", "db.wide.example.com", "precise"},
		{"10.70.0.1", "other.wide.example.com", "named"},
		{"10.70.0.1", "elsewhere.example", "precise"},
		{"10.99.0.1", "other.wide.example.com", "named"},
	} {
		conn := tls.Client(e.Captured(test.ip, 443), &tls.Config{ServerName: test.name, InsecureSkipVerify: true})
		if answer := envoytest.Exchange(t, conn, envoytest.Get("x", "/")); !strings.Contains(answer, test.want+" x /") {
			t.Errorf("%s for the server name %s: want %s, found %q", test.ip, test.name, test.want, answer)
		}
	}
}
