package traffic_test

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"

	"github.com/pilot-api/pilot-api/mesh"
)

// TestSidecar checks that requests to an ingress port of a Sidecar come to the socket or port
// where the workload listens, and that the workload reaches no host that its Sidecar does not
// import.
func TestSidecar(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "app.sock")
	behind, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	app := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "socket") }))
	app.Listener.Close()
	app.Listener = behind
	app.Start()
	t.Cleanup(app.Close)
	port := answering(t, "port")
	settings := mesh.DefaultSettings()
	settings.UnixSocketFolders = []string{filepath.Dir(socket)}
	e := startCompiled(t, settings, callerNode, fmt.Sprintf(`
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: caller}
spec:
  hosts: [caller.default.svc.cluster.local]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{number: 8000, name: http, protocol: HTTP}]
  endpoints: [{address: 10.0.0.7}]
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: others, namespace: shop}
spec:
  hosts: [known.example, unknown.example]
  resolution: NONE
  ports: [{number: %[1]d, name: http, protocol: HTTP}]
---
apiVersion: networking.istio.io/v1
kind: Sidecar
metadata: {name: caller}
spec:
  outboundTrafficPolicy: {mode: REGISTRY_ONLY}
  egress: [{hosts: [shop/known.example]}]
  ingress:
  - {port: {number: 8001, protocol: HTTP, name: a}, defaultEndpoint: 'unix://%[2]s'}
  - {port: {number: 8002, protocol: HTTP, name: b}, defaultEndpoint: '127.0.0.1:%[1]d'}
  - {port: {number: 8003, protocol: TCP, name: c}, bind: 127.0.0.1, defaultEndpoint: '0.0.0.0:%[1]d'}
`, port, socket))
	for _, call := range []struct {
		ip     string
		port   int
		host   string
		status int
		body   string
	}{
		{"10.0.0.7", 8001, "caller", 200, "socket"},
		{"10.0.0.7", 8002, "caller", 200, "port"},
		{"127.0.0.1", 8003, "caller", 200, "port"},
		{"10.0.0.7", 8000, "caller", 0, ""}, // The port of the service is not in the Sidecar.
		{"127.0.0.1", port, "known.example", 200, "port"},
		{"127.0.0.1", port, "unknown.example", 502, ""},
		{"127.0.0.1", port + 1, "known.example", 0, ""},
	} {
		if status, body := e.Status(t, call.ip, call.port, call.host, "/"); status != call.status || body != call.body {
			t.Errorf("%+v: %d %q", call, status, body)
		}
	}
}
