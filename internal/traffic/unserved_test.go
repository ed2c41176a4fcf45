package traffic_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/pilot-api/pilot-api/envoy/envoytest"
	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/mesh"
)

// TestServiceThatCannotBeServedIsClosed checks that a service whose resolution no proxy
// follows is not treated as an unknown host: requests would go on to the address that the
// caller asked for, in plain text although a DestinationRule asks for TLS.
func TestServiceThatCannotBeServedIsClosed(t *testing.T) {
	outside.Slow(t)
	port := answering(t, "plain text")
	e := startCompiled(t, mesh.DefaultSettings(), callerNode, fmt.Sprintf(`
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: dynamic}
spec:
  hosts: ["*.dyn.example"]
  resolution: DYNAMIC_DNS
  ports: [{number: %d, name: http, protocol: HTTP}]
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: dynamic}
spec:
  host: "*.dyn.example"
  trafficPolicy: {tls: {mode: SIMPLE, insecureSkipVerify: true}}
`, port))
	for host, want := range map[string]int{"x.dyn.example": http.StatusServiceUnavailable, "a.b.dyn.example": http.StatusServiceUnavailable, "other.example": http.StatusOK} {
		if got := envoytest.Ask(t, e.Captured("127.0.0.1", port), envoytest.Get(host, "/")).Status; got != want {
			t.Errorf("%s is answered %d, want %d", host, got, want)
		}
	}
}
