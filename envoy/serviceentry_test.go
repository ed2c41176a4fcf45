package envoy_test

import (
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/pilot-api/pilot-api/mesh"
)

const callingSidecar = "sidecar~" + proxyIP + "~x~default.svc.cluster.local"

// port is where a backend listens.
func (b *backend) port() int { return b.server.Listener.Addr().(*net.TCPAddr).Port }

// TestServiceAddresses calls services by all of their addresses.
func TestServiceAddresses(t *testing.T) {
	a, b, c := startBackend(t, "a"), startBackend(t, "b"), startBackend(t, "c")
	e := startCompiled(t, mesh.DefaultSettings(), callingSidecar, fmt.Sprintf(`
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: inside}
spec:
  hosts: [inside.default.svc.cluster.local]
  addresses: [10.9.0.1, 10.9.0.2]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{number: 7000, name: tcp, protocol: TCP}, {number: 80, name: http, protocol: HTTP}]
  endpoints: [{address: 127.0.0.1, ports: {tcp: %[1]d, http: %[1]d}}]
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: all}
spec:
  hosts: [all.example.com]
  addresses: [192.0.0.0/8, 198.18.0.0/15]
  resolution: STATIC
  ports: [{number: 7000, name: tcp, protocol: TCP}]
  endpoints: [{address: 127.0.0.1, ports: {tcp: %[2]d}}]
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: branch}
spec:
  hosts: [branch.example.com]
  addresses: [192.0.2.0/24, 198.18.1.1]
  resolution: STATIC
  ports: [{number: 7000, name: tcp, protocol: TCP}, {number: 80, name: web, protocol: TCP}]
  endpoints: [{address: 127.0.0.1, ports: {tcp: %[3]d, web: %[3]d}}]
`, a.port(), b.port(), c.port()))
	for _, test := range []struct {
		ip         string
		port       int
		host, want string
	}{
		{"10.9.0.1", 7000, "x", "a x /"},
		{"10.9.0.2", 7000, "x", "a x /"},
		{"192.7.7.7", 7000, "x", "b x /"},
		{"198.19.255.1", 7000, "x", "b x /"},
		{"192.0.2.9", 7000, "x", "c x /"},
		{"198.18.1.1", 7000, "x", "c x /"},
		{"198.18.1.2", 7000, "x", "b x /"},
		{"198.18.1.1", 80, "x", "c x /"},
		{"203.0.113.1", 80, "10.9.0.1", "a 10.9.0.1 /"},
		{"203.0.113.1", 80, "10.9.0.2", "a 10.9.0.2 /"},
	} {
		answer := exchange(t, e.captured(test.ip, test.port), "GET / HTTP/1.1\r\nHost: "+test.host+"\r\nConnection: close\r\n\r\n")
		if !strings.Contains(answer, test.want) {
			t.Errorf("%s:%d for %s: want %q, found %q", test.ip, test.port, test.host, test.want, answer)
		}
	}
}
