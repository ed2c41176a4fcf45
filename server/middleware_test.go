package server_test

import (
	"github.com/pilot-api/pilot-api/server/servertest"

	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/server"
	"github.com/pilot-api/pilot-api/store"
	"github.com/pilot-api/pilot-api/store/memory"
)

func TestRequestID(t *testing.T) {
	w := servertest.Start(t)
	for given, taken := range map[string]bool{
		"":                      false,
		"7f3a":                  true,
		"a/b:c=1~":              true,
		"two words":             false,
		"tab\tin it":            false,
		"\u00fcber":             false,
		strings.Repeat("a", 64): true,
		strings.Repeat("a", 65): false,
	} {
		got := w.Want(http.StatusOK, "GET", "/healthz", "", "X-Request-Id: "+given).Header.Get("X-Request-Id")
		if (got == given) != taken || got == "" {
			t.Errorf("%q is answered with %q, want the client's own: %v", given, got, taken)
		}
	}
}

// TestLogIsBounded checks that no request makes a line of the log longer than a few
// KiB, nor a record of a history, and that the cut is shown.
func TestLogIsBounded(t *testing.T) {
	var log bytes.Buffer
	mem := memory.New()
	h := server.New(server.Options{
		Store: refusing{store.Strict(mem)}, Reads: mem, Discovery: discovery.New(discovery.Options{Source: servertest.Nothing{}}),
		Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})), RequestTimeout: time.Second,
	}).Handler()
	long := strings.Repeat("a", 50<<10)
	for _, send := range []struct{ method, path string }{
		{"GET", "/" + long}, {"GET", "/healthz?" + long}, {"GET", servertest.RulesPath + "?labelSelector=" + long}, {long, "/"},
		{"POST", servertest.RulesPath + "?fieldManager=" + long}, {"GET", "/v1/registration/" + long}, {"GET", "/apis/registry.istio.io/v1/proxies/" + long + "/config/all"},
	} {
		r := httptest.NewRequestWithContext(t.Context(), send.method, send.path, strings.NewReader(servertest.Rule("a", 1)))
		r.Host = "localhost"
		r.Header.Set("Content-Type", "application/yaml")
		for _, name := range []string{"User-Agent", "X-Remote-User", "Referer", "X-Request-Id", "Accept"} {
			r.Header.Set(name, long)
		}
		log.Reset()
		h.ServeHTTP(httptest.NewRecorder(), r)
		for line := range strings.Lines(log.String()) {
			if len(line) > 8<<10 {
				t.Errorf("%.10s %.60s: a line of %d bytes: %.300s", send.method, send.path, len(line), line)
			}
		}
		if !strings.Contains(log.String(), "more bytes") {
			t.Errorf("%.10s %.60s: the log does not say that it is cut: %.300s", send.method, send.path, log.String())
		}
	}
}

// refusing is a store whose creates fail and repeat who the author is.
type refusing struct{ store.Interface }

func (refusing) Create(ctx context.Context, _ *schema.Object) (*schema.Object, error) {
	return nil, fmt.Errorf("refused to %v", store.AuthorOf(ctx))
}

// TestHead sends HEAD for everything that has GET.
func TestHead(t *testing.T) {
	w := servertest.Start(t)
	w.Create("reviews")
	for _, path := range []string{"/", "/healthz", "/readyz", "/version", "/metrics", "/apis", servertest.AllRules, servertest.RulesPath, servertest.RulesPath + "/reviews"} {
		get, head := w.Want(http.StatusOK, "GET", path, ""), w.Want(http.StatusOK, "HEAD", path, "")
		if head.Text != "" || head.Header.Get("Content-Type") != get.Header.Get("Content-Type") {
			t.Errorf("HEAD %s: %v and the body %q", path, head.Header, head.Text)
		}
	}
	w.Want(http.StatusNotFound, "HEAD", servertest.RulesPath+"/none", "")
	w.Want(http.StatusBadRequest, "HEAD", servertest.RulesPath+"?watch=true", "")
	if got := w.Want(http.StatusOK, "GET", "/metrics", "").Text; !strings.Contains(got, `method="HEAD",route="/healthz"`) {
		t.Errorf("HEAD is not counted as such:\n%s", got)
	}
}

// TestClientHangsUp checks that a request which ends because its client left counts
// as that, and not as a failure of the server.
func TestClientHangsUp(t *testing.T) {
	mem, reg := memory.New(), prometheus.NewRegistry()
	h := server.New(server.Options{Store: store.Strict(mem), Reads: mem, Registry: reg}).Handler()
	gone, hangUp := context.WithCancel(t.Context())
	hangUp()
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(gone, "GET", servertest.RulesPath+"?resourceVersion=999", nil))
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(gone, "DELETE", servertest.RulesPath+"/reviews", nil))
	const route = "/apis/config.istio.io/v1alpha2/namespaces/{namespace}/routerules"
	want := `
# HELP pilot_http_requests_total Requests answered, by method, route pattern and status code.
# TYPE pilot_http_requests_total counter
pilot_http_requests_total{code="499",method="DELETE",route="` + route + `/{name}"} 1
pilot_http_requests_total{code="499",method="GET",route="` + route + `"} 1
`
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want), "pilot_http_requests_total"); err != nil {
		t.Error(err)
	}
}
