package traffic_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/mesh"
)

// TestUnknownDestinations checks that a request to a host that no object declares goes on to
// its destination or is refused, as the mesh settings say, and that a rule which denies a path
// holds in both modes.
func TestUnknownDestinations(t *testing.T) {
	outside.Slow(t)
	port, other := answering(t, "there"), answering(t, "other")
	objects := fmt.Sprintf(`
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: known}
spec:
  hosts: [known.example]
  resolution: NONE
  ports: [{number: %d, name: http, protocol: HTTP}]
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: known}
spec:
  hosts: [known.example]
  http:
  - {match: [{uri: {prefix: /admin}}], directResponse: {status: 403}}
  - {route: [{destination: {host: known.example}}]}
`, port)
	for _, tc := range []struct {
		mode          mesh.OutboundMode
		host, unknown int
	}{{mesh.AllowAny, 200, 200}, {mesh.RegistryOnly, 502, 0}} {
		t.Run(string(tc.mode), func(t *testing.T) {
			settings := mesh.DefaultSettings()
			settings.OutboundTrafficPolicy = tc.mode
			e := startCompiled(t, settings, callerNode, objects)
			for _, call := range []struct {
				ip         string
				port       int
				host, path string
				status     int
			}{
				{"127.0.0.1", port, "known.example", "/", 200},
				{"127.0.0.1", port, "known.example", "/admin", 403},
				{"127.0.0.1", port, "KNOWN.example:" + fmt.Sprint(port), "/admin", 403},
				{"127.0.0.1", port, "nobody.example", "/", tc.host},
				{"127.0.0.1", other, "nobody.example", "/", tc.unknown},
				{"127.0.0.1", 15001, "nobody.example", "/", 0},
			} {
				if status, body := e.Status(t, call.ip, call.port, call.host, call.path); status != call.status {
					t.Errorf("%+v: %d %s", call, status, body)
				}
			}
		})
	}
}

// TestRulesHoldAtAllHTTPPorts checks that a rule that denies a path of an undeclared host still
// holds if another namespace declares the host at another port.
//
// Observes VirtualService hosts http[].directResponse.status
func TestRulesHoldAtAllHTTPPorts(t *testing.T) {
	outside.Slow(t)
	port := answering(t, "there")
	objects := fmt.Sprintf(`
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: known}
spec:
  hosts: [known.example]
  resolution: NONE
  ports: [{number: %d, name: http, protocol: HTTP}]
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: deny, namespace: istio-system}
spec:
  hosts: [bad.example.net]
  http:
  - {match: [{uri: {prefix: /admin}}], directResponse: {status: 403}}
  - {route: [{destination: {host: known.example}}]}
`, port)
	for _, ports := range []string{"", "{number: 9, name: http, protocol: HTTP}", "{number: 443, name: tls, protocol: TLS}", "{number: 9, name: tcp, protocol: TCP}"} {
		t.Run("declared at "+ports, func(t *testing.T) {
			all := objects
			if ports != "" {
				all += fmt.Sprintf(`---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: declares, namespace: elsewhere}
spec:
  hosts: [bad.example.net]
  resolution: STATIC
  ports: [%s]
  endpoints: [{address: 127.0.0.1}]
`, ports)
			}
			e := startCompiled(t, mesh.DefaultSettings(), callerNode, all)
			for _, at := range []int{80, port} {
				if status, body := e.Status(t, "127.0.0.1", at, "bad.example.net", "/admin"); status != http.StatusForbidden {
					t.Errorf("at port %d /admin is answered %d %s", at, status, body)
				}
			}
			if status, body := e.Status(t, "127.0.0.1", port, "nobody.example", "/admin"); status != http.StatusOK {
				t.Errorf("a host without rules is answered %d %s", status, body)
			}
		})
	}
}
