package traffic_test

import (
	"fmt"
	"net"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pilot-api/pilot-api/envoy/envoytest"
	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/mesh"
)

// TestServiceAddresses checks that a service gets the connections to each of its addresses.
func TestServiceAddresses(t *testing.T) {
	a, b, c := envoytest.StartBackend(t, "a"), envoytest.StartBackend(t, "b"), envoytest.StartBackend(t, "c")
	e := startCompiled(t, mesh.DefaultSettings(), callerNode, fmt.Sprintf(`
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
`, a.Port(), b.Port(), c.Port()))
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
		answer := envoytest.Exchange(t, e.Captured(test.ip, test.port), envoytest.Get(test.host, "/"))
		if !strings.Contains(answer, test.want) {
			t.Errorf("%s:%d for %s: want %q, found %q", test.ip, test.port, test.host, test.want, answer)
		}
	}
}

// TestServiceInstances sends requests to endpoints that are sockets of a file system or names,
// and to services without endpoints.
func TestServiceInstances(t *testing.T) {
	outside.Slow(t)
	a := envoytest.StartBackend(t, "a")
	settings := mesh.DefaultSettings()
	settings.UnixSocketFolders = []string{t.TempDir()}
	path := filepath.Join(settings.UnixSocketFolders[0], "socket")
	abstract, closed := "@"+path, filepath.Join(t.TempDir(), "socket")
	for name, at := range map[string]string{"file": path, "abstract": abstract, "closed": closed} {
		listener, err := net.Listen("unix", at)
		if err != nil {
			t.Fatal(err)
		}
		server := httptest.NewUnstartedServer(&envoytest.Backend{Name: name})
		server.Listener.Close()
		server.Listener = listener
		server.Start()
		t.Cleanup(server.Close)
	}
	e := startCompiled(t, settings, callerNode, fmt.Sprintf(`
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: file}
spec:
  hosts: [file.default.svc.cluster.local]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{number: 80, name: http, protocol: HTTP}]
  endpoints: [{address: "unix://%[1]s"}]
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: abstract}
spec:
  hosts: [abstract.example.com]
  resolution: STATIC
  ports: [{number: 80, name: http, protocol: HTTP}]
  workloadSelector: {labels: {app: abstract}}
---
apiVersion: networking.istio.io/v1
kind: WorkloadEntry
metadata: {name: abstract}
spec: {address: "unix://%[2]s", labels: {app: abstract}}
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: closed}
spec:
  hosts: [closed.example.com]
  resolution: STATIC
  ports: [{number: 80, name: http, protocol: HTTP}]
  endpoints: [{address: "unix://%[4]s"}]
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: turning}
spec:
  hosts: [turning.example.com]
  resolution: DNS_ROUND_ROBIN
  ports: [{number: 80, name: http, protocol: HTTP}]
  endpoints: [{address: localhost, ports: {http: %[3]d}}]
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: anywhere}
spec:
  hosts: ["*.anywhere.example"]
  ports: [{number: 80, name: http, protocol: HTTP, targetPort: %[3]d}]
`, path, abstract, a.Port(), closed))
	for host, want := range map[string]string{
		"file":                 "file file /",
		"abstract.example.com": "HTTP/1.1 503",
		"closed.example.com":   "HTTP/1.1 503",
		"turning.example.com":  "a turning.example.com /",
		"x.anywhere.example":   "a x.anywhere.example /",
	} {
		answer := envoytest.Exchange(t, e.Captured("127.0.0.1", 80), envoytest.Get(host, "/"))
		if !strings.Contains(answer, want) {
			t.Errorf("%s: want %q, found %q", host, want, answer)
		}
	}
}
