package e2e

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pilot-api/pilot-api/internal/outside"
)

// BenchmarkAccepted is the time from the acknowledgement of a write until an Envoy has
// accepted it: a table of so many routes of which one has changed. It asks the Envoy
// again and again, which costs it some of the time. One that polls does so every 200 ms
// to 400 ms.
func BenchmarkAccepted(b *testing.B) {
	for _, api := range []string{"ads", "delta", "rest"} {
		for _, routes := range []int{100, 1_000, 3_000} {
			b.Run(fmt.Sprintf("%s/routes=%d", api, routes), func(b *testing.B) {
				w := newAccepting(b, api, routes)
				var all []time.Duration
				for b.Loop() {
					all = append(all, w.change())
				}
				slices.Sort(all)
				b.ReportMetric(0, "ns/op") // With what the benchmark itself does.
				b.ReportMetric(all[len(all)/2].Seconds()*1e3, "ms-p50")
				b.ReportMetric(all[len(all)*99/100].Seconds()*1e3, "ms-p99")
			})
		}
	}
}

// accepting is an Envoy with a table of so many routes.
type accepting struct {
	testing.TB
	ctx   context.Context
	pilot *Pilot
	envoy *Sidecar
	step  int
}

func newAccepting(tb testing.TB, api string, routes int) *accepting {
	tb.Helper()
	p := programs(tb)
	p.Envoy = outside.Tool(tb, "envoy")
	dir := tb.TempDir()
	settings := filepath.Join(dir, "mesh.yaml")
	// The default delay of polls would be most of what is measured.
	if err := os.WriteFile(settings, []byte("rdsRefreshDelay: 200ms\n"), 0o600); err != nil {
		tb.Fatal(err)
	}
	w := &accepting{TB: tb, ctx: context.WithoutCancel(tb.Context())}
	var err error
	if w.pilot, err = StartPilot(w.ctx, p, dir, "--data-dir", filepath.Join(dir, "data"), "--mesh-config", settings); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = w.pilot.Stop() })
	var text strings.Builder
	for i := range routes {
		fmt.Fprintf(&text, "---\n%s", serviceOf(i))
	}
	text.WriteString("---\n" + w.rule())
	file := filepath.Join(dir, "objects.yaml")
	if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
		tb.Fatal(err)
	}
	if _, err := w.pilot.Istioctl(w.ctx, "apply", "-f", file); err != nil {
		tb.Fatal(err)
	}
	if err := w.pilot.Published(w.ctx); err != nil {
		tb.Fatal(err)
	}
	if w.envoy, err = StartSidecar(w.ctx, w.pilot, dir, "sidecar~10.9.0.1~a.default~default.svc.cluster.local", "--api", api); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = w.envoy.Stop() })
	if err := w.envoy.Settle(w.ctx); err != nil {
		tb.Fatal(err)
	}
	return w
}

func serviceOf(i int) string {
	return fmt.Sprintf(`apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: service-%[1]d}
spec:
  hosts: [service-%[1]d.example]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{number: 80, name: http, protocol: HTTP}]
  endpoints: [{address: 10.1.%[2]d.%[3]d, ports: {http: 8080}}]
`, i, i/250, i%250+1)
}

// rule changes the route of one service with each call.
func (w *accepting) rule() string {
	w.step++
	return fmt.Sprintf(`apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: changes, namespace: default}
spec:
  hosts: [service-0.example]
  http: [{timeout: %dms, route: [{destination: {host: service-0.example}}]}]
`, w.step)
}

// change writes the rule and waits until the Envoy has accepted another table.
func (w *accepting) change() time.Duration {
	w.Helper()
	before := w.accepted()
	req, err := http.NewRequestWithContext(w.ctx, http.MethodPatch,
		w.pilot.URL+"/apis/networking.istio.io/v1/namespaces/default/virtualservices/changes",
		strings.NewReader(fmt.Sprintf(`{"spec":{"http":[{"timeout":"%dms","route":[{"destination":{"host":"service-0.example"}}]}]}}`, w.step+1)))
	if err != nil {
		w.Fatal(err)
	}
	w.step++
	req.Header.Set("Content-Type", "application/merge-patch+json")
	if _, err := send(req); err != nil {
		w.Fatal(err)
	}
	acknowledged := time.Now()
	for w.accepted() == before {
		time.Sleep(time.Millisecond)
	}
	return time.Since(acknowledged)
}

// accepted is how many tables the Envoy has.
func (w *accepting) accepted() int {
	w.Helper()
	n, err := w.envoy.Counter(w.ctx, `^http\..*\.rds\..*\.update_success$`)
	if err != nil {
		w.Fatal(err)
	}
	return n
}
