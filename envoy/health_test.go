package envoy_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pilot-api/pilot-api/envoy/envoytest"
	"github.com/pilot-api/pilot-api/ir"
)

// TestHealthCheck: of two endpoints one dies and leaves; then no request fails.
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
			inline := &ir.RouteTable{Name: "80", VirtualHosts: []*ir.VirtualHost{{
				Name: "svc", Domains: []string{"svc"}, Routes: []*ir.Route{{Clusters: all("both")}},
			}}}
			e := envoytest.Start(t, config(nil, []*ir.Listener{
				{IP: "127.0.0.1", Port: 15001, UseOriginalDst: true, Bind: true},
				{IP: "0.0.0.0", Port: envoytest.ServicePort, Direction: ir.Outbound, HTTP: &ir.HTTPListener{Inline: inline}},
			}, cluster))
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

// awaitFailed polls until so many endpoints are known to be dead.
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
