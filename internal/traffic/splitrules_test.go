package traffic_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pilot-api/pilot-api/envoy/envoytest"
	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/internal/selfsigned"
	"github.com/pilot-api/pilot-api/mesh"
)

// webEntry declares web.example, with an endpoint at a port of 127.0.0.1.
const webEntry = `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: web}
spec:
  hosts: [web.example]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{number: 80, name: http, protocol: HTTP, targetPort: %d}]
  endpoints: [{address: 127.0.0.1, labels: {version: v1}}]
---
`

// answering runs a server that answers each request with a word, and returns its port.
func answering(t *testing.T, word string) int {
	t.Helper()
	return envoytest.Port(envoytest.Serve(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, word) }))
}

// splitDeny has two VirtualServices for one host of a gateway. The one called m-app serves the
// host, and the one called NAME denies a path.
const splitDeny = `
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: edge}
spec:
  servers: [{port: {number: 8080, name: http, protocol: HTTP}, hosts: ["*.example"]}]
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: m-app, creationTimestamp: "2026-01-02T00:00:00Z"}
spec:
  hosts: [web.example]
  gateways: [edge]
  http: [APP]
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: NAME, creationTimestamp: "CREATED"}
spec:
  hosts: [HOST]
  gateways: [edge]
  http: [{match: [{uri: {prefix: /admin}}], directResponse: {status: 403}}]
`

// TestSplitDenyHoldsAtAGateway checks that a path that one VirtualService denies stays denied
// if another VirtualService serves the host, whatever their names and ages are, and however the
// other one matches all requests.
//
// Observes VirtualService hosts gateways http[].directResponse.status
func TestSplitDenyHoldsAtAGateway(t *testing.T) {
	outside.Slow(t)
	port := answering(t, "served")
	for _, app := range []string{
		"{route: [{destination: {host: web.example}}]}",
		"{match: [{uri: {prefix: /}}], route: [{destination: {host: web.example}}]}",
		"{match: [{uri: {regex: '.*'}}], route: [{destination: {host: web.example}}]}",
	} {
		for _, deny := range []struct{ name, created, host string }{
			{"z-deny", "2026-01-03T00:00:00Z", "web.example"},
			{"a-deny", "2026-01-03T00:00:00Z", "WEB.example"},
			{"z-deny", "2026-01-02T00:00:00Z", "web.example"},
			{"a-deny", "2026-01-02T00:00:00Z", "web.example"},
			{"z-deny", "2026-01-01T00:00:00Z", "Web.Example"},
		} {
			t.Run(fmt.Sprintf("%s/%s/%s", app, deny.name, deny.created[:10]), func(t *testing.T) {
				objects := strings.NewReplacer("APP", app, "NAME", deny.name, "CREATED", deny.created, "HOST", deny.host).Replace(splitDeny)
				e := startCompiled(t, mesh.DefaultSettings(), routerNode, fmt.Sprintf(webEntry, port)+objects)
				for path, want := range map[string]int{"/": http.StatusOK, "/admin": http.StatusForbidden, "/admin/x": http.StatusForbidden} {
					for _, host := range []string{"web.example", "WEB.example", "web.example:8080", "web.example."} {
						got := envoytest.Ask(t, e.DialPort(8080), envoytest.Get(host, path)).Status
						if got == 0 || got == http.StatusOK && want != got || host == "web.example" && got != want {
							t.Errorf("%s%s is answered %d, want %d", host, path, got, want)
						}
					}
				}
			})
		}
	}
}

// TestSplitTLSHoldsAtASidecar checks that TLS that one DestinationRule of a host demands is
// used for all subsets of the host, whichever rule declares them and whichever rule is older.
// The endpoint speaks only TLS, so a plain request fails.
//
// Observes DestinationRule subsets trafficPolicy.tls.mode
func TestSplitTLSHoldsAtASidecar(t *testing.T) {
	dir := t.TempDir()
	authority := selfsigned.NewAuthority(t, dir)
	authority.Issue(t, "web.example")
	settings := mesh.DefaultSettings()
	settings.SystemRootsFile = filepath.Join(dir, "system.crt")
	roots, err := os.ReadFile(filepath.Join(dir, "authority.crt"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(settings.SystemRootsFile, roots, 0o600); err != nil {
		t.Fatal(err)
	}
	port := tellingTLS(t, authority, dir, "web.example")
	const secure, subset = "trafficPolicy: {tls: {mode: SIMPLE}}", "subsets: [{name: v1, labels: {version: v1}}]"
	const both = `
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: web}
spec:
  hosts: [web.example]
  http:
  - {match: [{uri: {prefix: /subset}}], route: [{destination: {host: web.example, subset: v1}}]}
  - {route: [{destination: {host: web.example}}]}
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: a, creationTimestamp: "2026-01-01T00:00:00Z"}
spec: {host: web.example, FIRST}
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: b, creationTimestamp: "2026-01-02T00:00:00Z"}
spec: {host: web.example, SECOND}
`
	for _, rules := range []struct{ first, second string }{
		{secure, subset},
		{subset, secure},
		{subset + ", trafficPolicy: {loadBalancer: {simple: RANDOM}}", secure},
		{subset + ", trafficPolicy: {tls: {mode: DISABLE}}", secure},
		{subset, "exportTo: ['.'], " + secure},
	} {
		t.Run(rules.first+"/"+rules.second, func(t *testing.T) {
			objects := strings.NewReplacer("FIRST", rules.first, "SECOND", rules.second).Replace(both)
			e := startCompiled(t, settings, callerNode, fmt.Sprintf(webEntry, port)+objects)
			for _, path := range []string{"/", "/subset"} {
				code, body := e.Status(t, "192.0.2.1", 80, "web.example", path)
				if code != http.StatusOK || !strings.HasPrefix(body, "asked for web.example") {
					t.Errorf("%s is answered %d %q", path, code, body)
				}
			}
		})
	}
}
