package traffic_test

import (
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/envoy/envoytest"
	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/mesh"
)

// withheldRules returns objects with a rule that exceeds a small budget, and one that does not.
func withheldRules(gateways string) string {
	var matches strings.Builder
	for i := range 40 {
		fmt.Fprintf(&matches, "{uri: {prefix: /%d}},", i)
	}
	return fmt.Sprintf(`
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: other}
spec:
  hosts: [other.example]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{number: 80, name: http, protocol: HTTP, targetPort: PORT}]
  endpoints: [{address: 127.0.0.1}]
---
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: edge}
spec:
  servers: [{port: {number: 8080, name: http, protocol: HTTP}, hosts: ["*.example"]}]
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: large}
spec:
  hosts: [web.example, nobody.example]
  gateways: [%[1]s]
  http: [{match: [%[2]s], route: [{destination: {host: other.example}}]}, {route: [{destination: {host: web.example}}]}]
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: small}
spec:
  hosts: [web.example, other.example]
  gateways: [%[1]s]
  http: [{match: [{uri: {prefix: /small}}], route: [{destination: {host: other.example}}]}, {route: [{destination: {host: other.example}}]}]
`, gateways, matches.String())
}

// TestWithheldVirtualServiceAnswersNothing checks that no request for a host of a withheld
// VirtualService reaches an endpoint, neither by another rule nor as a request to an unknown
// host, and that requests for other hosts do.
func TestWithheldVirtualServiceAnswersNothing(t *testing.T) {
	outside.Slow(t)
	settings := mesh.DefaultSettings()
	settings.Budget = mesh.Budget{Object: 30, Mesh: 1000}
	port := answering(t, "served")
	objects := func(gateways string) string {
		return fmt.Sprintf(webEntry, port) + strings.ReplaceAll(withheldRules(gateways), "PORT", fmt.Sprint(port))
	}
	for _, proxy := range []struct{ node, gateways string }{{callerNode, "mesh"}, {routerNode, "edge"}} {
		t.Run(proxy.gateways, func(t *testing.T) {
			_, problems := compiledFor(t, settings, proxy.node, objects(proxy.gateways))
			withheld := func(p diag.Problem) bool { return p.Code == diag.OverBudget && p.Object.Name == "large" }
			if !slices.ContainsFunc(problems, withheld) {
				t.Fatalf("the large rule is not withheld:\n%v", problems)
			}
			e := startCompiled(t, settings, proxy.node, objects(proxy.gateways))
			for _, ask := range []struct {
				host, path string
				want       int
			}{
				{"web.example", "/", http.StatusServiceUnavailable},
				{"web.example", "/1", http.StatusServiceUnavailable},
				{"web.example", "/small", http.StatusServiceUnavailable},
				{"WEB.example:80", "/", http.StatusServiceUnavailable},
				{"nobody.example", "/", http.StatusServiceUnavailable},
				{"other.example", "/", http.StatusOK},
				{"other.example", "/small", http.StatusOK},
			} {
				conn := func() net.Conn {
					if proxy.node == routerNode {
						return e.DialPort(8080)
					}
					return e.Captured("127.0.0.1", 80)
				}
				if got := envoytest.Ask(t, conn(), envoytest.Get(ask.host, ask.path)).Status; got != ask.want {
					t.Errorf("%s%s is answered %d, want %d", ask.host, ask.path, got, ask.want)
				}
			}
		})
	}
}
