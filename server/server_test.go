package server_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"

	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/server"
	"github.com/pilot-api/pilot-api/store"
	"github.com/pilot-api/pilot-api/store/memory"
)

// world is a server on a real listener over a store in memory.
type world struct {
	*testing.T
	store     *memory.Store
	discovery *discovery.Publisher // nil without proxies
	url       string
	client    *http.Client // nil for the default one
	handler   http.Handler // that url serves
}

func start(t *testing.T, change ...func(*server.Options)) *world {
	t.Helper()
	return startBehind(t, asDescribed, change...)
}

// anyAnswer skips the comparison with OpenAPI, for a server over a store that fails
// as no real one does.
func anyAnswer(_ *testing.T, h http.Handler) http.Handler { return h }

// startBehind starts a server whose answers judge checks.
func startBehind(t *testing.T, judge func(*testing.T, http.Handler) http.Handler, change ...func(*server.Options)) *world {
	t.Helper()
	mem := memory.New()
	opts := server.Options{
		Store: store.Strict(mem), Reads: mem,
		Log:     slog.New(slog.NewTextHandler(testWriter{t}, nil)),
		Version: version.Info{Major: "0", Minor: "1", GitVersion: "v0.1.0-test"},
	}
	for _, c := range change {
		c(&opts)
	}
	handler := judge(t, server.New(opts).Handler())
	ts := httptest.NewServer(handler)
	t.Cleanup(ts.Close)
	return &world{T: t, store: mem, url: ts.URL, handler: handler}
}

// testWriter writes the server's log to the test's.
type testWriter struct{ t testing.TB }

func (w testWriter) Write(p []byte) (int, error) {
	w.t.Log(strings.TrimSpace(string(p)))
	return len(p), nil
}

// answer is a whole HTTP answer.
type answer struct {
	*http.Response
	text string
}

// do sends one request; headers are "Name: value".
func (w *world) do(method, path, body string, headers ...string) answer {
	w.Helper()
	req, err := http.NewRequestWithContext(w.Context(), method, w.url+path, strings.NewReader(body))
	if err != nil {
		w.Fatal(err)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Add(name, value)
	}
	if host := req.Header.Get("Host"); host != "" {
		req.Host = host
	}
	resp, err := cmp.Or(w.client, http.DefaultClient).Do(req)
	if err != nil {
		w.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		w.Fatal(err)
	}
	return answer{resp, string(text)}
}

// want is do for a request that must be answered with code.
func (w *world) want(code int, method, path, body string, headers ...string) answer {
	w.Helper()
	got := w.do(method, path, body, headers...)
	if got.StatusCode != code {
		w.Fatalf("%s %s: got %d, want %d\n%s", method, path, got.StatusCode, code, got.text)
	}
	return got
}

// status returns the Status of a failed request.
func (a answer) status(t *testing.T) metav1.Status {
	t.Helper()
	var st metav1.Status
	if err := json.Unmarshal([]byte(a.text), &st); err != nil || st.Kind != "Status" || int(st.Code) != a.StatusCode {
		t.Fatalf("not a Status of code %d: %v\n%s", a.StatusCode, err, a.text)
	}
	return st
}

// object has the fields of an object that tests read.
type object struct {
	Kind     string
	Metadata metav1.ObjectMeta
	Spec     json.RawMessage
}

func (a answer) object(t *testing.T) object {
	t.Helper()
	var o object
	if err := json.Unmarshal([]byte(a.text), &o); err != nil {
		t.Fatalf("not an object: %v\n%s", err, a.text)
	}
	return o
}

const (
	rulesPath = "/apis/config.istio.io/v1alpha2/namespaces/default/routerules"
	allRules  = "/apis/config.istio.io/v1alpha2/routerules"
	asYAML    = "Content-Type: application/yaml"
	asJSON    = "Content-Type: application/json"
	asTable   = "Accept: application/json;as=Table;v=v1;g=meta.k8s.io"
)

// rule returns a RouteRule in YAML; metadata are additional lines of its metadata.
func rule(name string, weight int, metadata ...string) string {
	more := ""
	for _, line := range metadata {
		more += "  " + line + "\n"
	}
	return fmt.Sprintf(`apiVersion: config.istio.io/v1alpha2
kind: RouteRule
metadata:
  name: %s
%sspec:
  destination:
    name: reviews
  route:
  - labels:
      version: v1
    weight: %d
  - labels:
      version: v2
    weight: %d
`, name, more, weight, 100-weight)
}

func (w *world) create(name string, metadata ...string) object {
	w.Helper()
	return w.want(http.StatusCreated, "POST", rulesPath, rule(name, 100, metadata...), asYAML).object(w.T)
}

func mustRevision(t *testing.T, o object) int64 {
	t.Helper()
	n, err := strconv.ParseInt(o.Metadata.ResourceVersion, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
