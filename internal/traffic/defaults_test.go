package traffic_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/envoy/envoytest"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// TestDefaults checks that a service without rules has no limits, and that a request which
// did not reach one endpoint is sent to another.
func TestDefaults(t *testing.T) {
	there := envoytest.StartBackend(t, "there")
	e := startCompiled(t, mesh.DefaultSettings(), callerNode, fmt.Sprintf(`
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: svc}
spec:
  hosts: [svc.default.svc.cluster.local]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{number: 80, name: http, protocol: HTTP, targetPort: %d}]
  endpoints: [{address: 127.0.0.1}, {address: 127.0.0.2}]
`, there.Port()))
	gone := fmt.Sprintf("out.svc.default.svc.cluster.local|http::127.0.0.2:%d::cx_connect_fail::", there.Port())
	clusters, called := "", false
	for range 64 { // Any of them may go there at first.
		if status, body := e.Status(t, envoytest.ServiceIP, 80, "svc.default.svc.cluster.local", "/"); status != 200 {
			t.Errorf("%d %q", status, body)
		}
		clusters = e.AdminText("/clusters")
		if called = strings.Contains(clusters, gone) && !strings.Contains(clusters, gone+"0\n"); called {
			break
		}
	}
	if !called {
		t.Errorf("nobody called the endpoint that is not there:\n%s", clusters)
	}
	for _, limit := range []string{"connections", "pending_requests", "requests", "retries"} {
		if want := "out.svc.default.svc.cluster.local|http::default_priority::max_" + limit + "::4294967295"; !strings.Contains(clusters, want) {
			t.Errorf("no %s in\n%s", want, clusters)
		}
	}
}

// TestPassthroughIsNotAsked checks that a cluster with PASSTHROUGH has no health checks, even
// if the mesh has a health check for all clusters.
func TestPassthroughIsNotAsked(t *testing.T) {
	settings := mesh.DefaultSettings()
	settings.HealthCheck = &schema.HealthCheck{
		TCP: &struct{}{}, Interval: metav1.Duration{Duration: time.Second}, Timeout: metav1.Duration{Duration: time.Second},
		UnhealthyThreshold: 1, HealthyThreshold: 1,
	}
	there := envoytest.StartBackend(t, "there")
	e := startCompiled(t, settings, callerNode, fmt.Sprintf(`
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: svc}
spec:
  hosts: [svc.default.svc.cluster.local]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{number: %d, name: http, protocol: HTTP}]
  endpoints: [{address: 127.0.0.2}]
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: svc}
spec:
  host: svc
  trafficPolicy: {loadBalancer: {simple: PASSTHROUGH}}
`, there.Port()))
	if status, body := e.Status(t, "127.0.0.1", there.Port(), "svc.default.svc.cluster.local", "/"); status != 200 || !strings.HasPrefix(body, "there ") {
		t.Errorf("%d %q", status, body)
	}
}
