package server_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/pilot-api/pilot-api/server"
	"github.com/pilot-api/pilot-api/store"
	"github.com/pilot-api/pilot-api/store/memory"
)

func TestRequestID(t *testing.T) {
	w := start(t)
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
		got := w.want(http.StatusOK, "GET", "/healthz", "", "X-Request-Id: "+given).Header.Get("X-Request-Id")
		if (got == given) != taken || got == "" {
			t.Errorf("%q is answered with %q, want the client's own: %v", given, got, taken)
		}
	}
}

// TestHead sends HEAD for everything that has GET.
func TestHead(t *testing.T) {
	w := start(t)
	w.create("reviews")
	for _, path := range []string{"/", "/healthz", "/readyz", "/version", "/metrics", "/apis", allRules, rulesPath, rulesPath + "/reviews"} {
		get, head := w.want(http.StatusOK, "GET", path, ""), w.want(http.StatusOK, "HEAD", path, "")
		if head.text != "" || head.Header.Get("Content-Type") != get.Header.Get("Content-Type") {
			t.Errorf("HEAD %s: %v and the body %q", path, head.Header, head.text)
		}
	}
	w.want(http.StatusNotFound, "HEAD", rulesPath+"/none", "")
	w.want(http.StatusBadRequest, "HEAD", rulesPath+"?watch=true", "")
	if got := w.want(http.StatusOK, "GET", "/metrics", "").text; !strings.Contains(got, `method="HEAD",route="/healthz"`) {
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
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(gone, "GET", rulesPath+"?resourceVersion=999", nil))
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(gone, "DELETE", rulesPath+"/reviews", nil))
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
