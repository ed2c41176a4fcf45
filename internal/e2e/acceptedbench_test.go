package e2e

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/internal/testbed"
)

// BenchmarkAccepted is the time from the acknowledgement of a write until an Envoy
// answers by it: a table of so many routes of which one has changed. Each write comes
// after quiet, so that no hold-off is in it; writes that follow each other closely wait
// for the end of theirs, 100 ms by default. An Envoy that polls does so every 200 ms to
// 400 ms.
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
	// client asks the Envoy, and takes a redirection for an answer.
	client *http.Client
	step   int
}

func newAccepting(tb testing.TB, api string, routes int) *accepting {
	tb.Helper()
	p := programs(tb)
	p.Envoy = outside.Tool(tb, "envoy")
	dir := tb.TempDir()
	settings := filepath.Join(dir, "mesh.yaml")
	port, err := testbed.FreePort()
	if err != nil {
		tb.Fatal(err)
	}
	// The default delay of polls would be most of what is measured.
	if err := os.WriteFile(settings, fmt.Appendf(nil, "rdsRefreshDelay: 200ms\nproxyHttpPort: %d\n", port), 0o600); err != nil {
		tb.Fatal(err)
	}
	proxy := &url.URL{Scheme: "http", Host: net.JoinHostPort("127.0.0.1", strconv.Itoa(port))}
	w := &accepting{TB: tb, ctx: context.WithoutCancel(tb.Context()), client: asking(&http.Transport{Proxy: http.ProxyURL(proxy)})}
	if w.pilot, err = StartPilot(w.ctx, p, dir, "--data-dir", filepath.Join(dir, "data"), "--mesh-config", settings); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = w.pilot.Stop() })
	var text strings.Builder
	for i := range routes {
		fmt.Fprintf(&text, "---\n%s", serviceOf(i))
	}
	text.WriteString(numbered)
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

// numbered has one service answer with a number of its own.
const numbered = `---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: changes, namespace: default}
spec:
  hosts: [service-0.example]
  http: [{redirect: {uri: /0}}]
`

// change writes the rule and waits until the Envoy answers by it.
func (w *accepting) change() time.Duration {
	w.Helper()
	time.Sleep(200 * time.Millisecond)
	w.step++
	answer := "/" + strconv.Itoa(w.step)
	req, err := http.NewRequestWithContext(w.ctx, http.MethodPatch,
		w.pilot.URL+"/apis/networking.istio.io/v1/namespaces/default/virtualservices/changes",
		strings.NewReader(fmt.Sprintf(`{"spec":{"http":[{"redirect":{"uri":%q}}]}}`, answer)))
	if err != nil {
		w.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/merge-patch+json")
	if _, err := send(req); err != nil {
		w.Fatal(err)
	}
	acknowledged := time.Now()
	for !strings.HasSuffix(w.location(), answer) {
		time.Sleep(time.Millisecond)
	}
	return time.Since(acknowledged)
}

// location is where the Envoy sends who asks.
func (w *accepting) location() string {
	w.Helper()
	req, err := http.NewRequestWithContext(w.ctx, http.MethodGet, "http://service-0.example/", nil)
	if err != nil {
		w.Fatal(err)
	}
	resp, err := w.client.Do(req)
	if err != nil {
		w.Fatal(err)
	}
	_ = resp.Body.Close()
	return resp.Header.Get("Location")
}
