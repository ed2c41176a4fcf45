package envoy_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pilot-api/pilot-api/envoy/envoytest"
	"github.com/pilot-api/pilot-api/ir"
)

// TestHealthCheck checks that no request fails after health checks have found that one of two
// endpoints is gone.
func TestHealthCheck(t *testing.T) {
	for name, check := range map[string]ir.HealthCheck{
		"http": {HTTP: &ir.HTTPHealthCheck{Path: "/healthz", Host: "svc"}}, "tcp": {},
	} {
		t.Run(name, func(t *testing.T) {
			check.Interval, check.Timeout, check.Unhealthy, check.Healthy = 50*time.Millisecond, 10*time.Second, 2, 1
			stays, dies := envoytest.StartBackend(t, "stays"), envoytest.StartBackend(t, "dies")
			cluster := &ir.Cluster{
				Name: "both", Type: ir.StaticHosts, HealthCheck: &check,
				Hosts: append(stays.Cluster().Hosts, dies.Cluster().Hosts...),
			}
			e := envoytest.Start(t, config(nil, captured(&ir.Route{Clusters: all("both")}), cluster))
			awaitFailed(t, e, 0)
			met := map[string]bool{}
			for range 10 {
				_, body := request(t, e, http.MethodGet, "/", nil)
				met[strings.Fields(body)[0]] = true
			}
			if len(met) != 2 {
				t.Fatalf("while both live, %v answer", met)
			}
			dies.Server.Close()
			awaitFailed(t, e, 1)
			for range 20 {
				if resp, body := request(t, e, http.MethodGet, "/", nil); resp.StatusCode != http.StatusOK || !strings.HasPrefix(body, "stays ") {
					t.Errorf("after one left: %d %q", resp.StatusCode, body)
				}
			}
		})
	}
}

// awaitFailed polls until health checks of a number of endpoints have failed.
func awaitFailed(t *testing.T, e *envoytest.Envoy, want int) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for {
		text := e.AdminText("/clusters")
		if strings.Count(text, "failed_active_hc") == want {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("want %d dead endpoints, found\n%s", want, text)
		}
		time.Sleep(10 * time.Millisecond) // Envoy tells in no other way.
	}
}
