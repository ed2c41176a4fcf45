package servertest

import (
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
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
	"github.com/pilot-api/pilot-api/store/cache"
	"github.com/pilot-api/pilot-api/store/memory"
)

// World is a server on a real listener over a store in memory.
type World struct {
	*testing.T
	Store     *memory.Store
	Discovery *discovery.Publisher // nil without proxies
	URL       string
	Client    *http.Client // nil for the default one
	Handler   http.Handler // that url serves
	Server    *server.Server
}

func Start(t *testing.T, change ...func(*server.Options)) *World {
	t.Helper()
	return StartBehind(t, asDescribed, change...)
}

// StartBehind starts a server whose answers judge checks.
func StartBehind(t *testing.T, judge func(*testing.T, http.Handler) http.Handler, change ...func(*server.Options)) *World {
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
	of := server.New(opts)
	handler := judge(t, of.Handler())
	ts := httptest.NewServer(handler)
	t.Cleanup(ts.Close)
	return &World{T: t, Store: mem, URL: ts.URL, Handler: handler, Server: of}
}

// testWriter writes the server's log to the test's.
type testWriter struct{ t testing.TB }

func (w testWriter) Write(p []byte) (int, error) {
	w.t.Log(strings.TrimSpace(string(p)))
	return len(p), nil
}

// Answer is a whole HTTP answer.
type Answer struct {
	*http.Response
	Text string
}

// Do sends one request; headers are "Name: value".
func (w *World) Do(method, path, body string, headers ...string) Answer {
	w.Helper()
	req, err := http.NewRequestWithContext(w.Context(), method, w.URL+path, strings.NewReader(body))
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
	resp, err := cmp.Or(w.Client, http.DefaultClient).Do(req)
	if err != nil {
		w.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		w.Fatal(err)
	}
	return Answer{resp, string(text)}
}

// Want is do for a request that must be answered with code.
func (w *World) Want(code int, method, path, body string, headers ...string) Answer {
	w.Helper()
	got := w.Do(method, path, body, headers...)
	if got.StatusCode != code {
		w.Fatalf("%s %s: got %d, want %d\n%s", method, path, got.StatusCode, code, got.Text)
	}
	return got
}

// Failure returns the Status of a failed request.
func (a Answer) Failure(t *testing.T) metav1.Status {
	t.Helper()
	var st metav1.Status
	if err := json.Unmarshal([]byte(a.Text), &st); err != nil || st.Kind != "Status" || int(st.Code) != a.StatusCode {
		t.Fatalf("not a Status of code %d: %v\n%s", a.StatusCode, err, a.Text)
	}
	return st
}

// Object has the fields of an object that tests read.
type Object struct {
	Kind     string
	Metadata metav1.ObjectMeta
	Spec     json.RawMessage
}

func (a Answer) Object(t *testing.T) Object {
	t.Helper()
	var o Object
	if err := json.Unmarshal([]byte(a.Text), &o); err != nil {
		t.Fatalf("not an object: %v\n%s", err, a.Text)
	}
	return o
}

const (
	RulesPath = "/apis/config.istio.io/v1alpha2/namespaces/default/routerules"
	AllRules  = "/apis/config.istio.io/v1alpha2/routerules"
	AsYAML    = "Content-Type: application/yaml"
	AsJSON    = "Content-Type: application/json"
	AsTable   = "Accept: application/json;as=Table;v=v1;g=meta.k8s.io"
)

// Rule returns a RouteRule in YAML; metadata are additional lines of its metadata.
func Rule(name string, weight int, metadata ...string) string {
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

func (w *World) Create(name string, metadata ...string) Object {
	w.Helper()
	return w.Want(http.StatusCreated, "POST", RulesPath, Rule(name, 100, metadata...), AsYAML).Object(w.T)
}

func MustRevision(t *testing.T, o Object) int64 {
	t.Helper()
	n, err := strconv.ParseInt(o.Metadata.ResourceVersion, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Serve runs the real Serve. stop stops it and returns its error.
func Serve(t *testing.T, change func(*server.Options)) (w *World, addr string, stop func() error) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	mem := memory.New()
	opts := server.Options{Store: store.Strict(mem), Reads: mem, Log: slog.New(slog.DiscardHandler)}
	if change != nil {
		change(&opts)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.New(opts).Serve(ctx, ln) }()
	stop = func() error { cancel(); return <-ended }
	t.Cleanup(cancel)
	addr = ln.Addr().String()
	return &World{T: t, Store: mem, URL: "http://" + addr}, addr, stop
}

// Raw sends a GET and returns the body undecoded.
func (w *World) Raw(path string, headers ...string) (*http.Response, string) {
	w.Helper()
	req, err := http.NewRequestWithContext(w.Context(), "GET", w.URL+path, nil)
	if err != nil {
		w.Fatal(err)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
	}
	resp, err := (&http.Transport{DisableCompression: true}).RoundTrip(req)
	if err != nil {
		w.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		w.Fatal(err)
	}
	return resp, string(body)
}

func Gunzip(t *testing.T, body string) string {
	t.Helper()
	in, err := gzip.NewReader(strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(in)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// StartWhole starts a server with cache and discovery, like the program.
func StartWhole(t *testing.T) (url string) {
	t.Helper()
	mem, quiet := memory.New(), slog.New(slog.DiscardHandler)
	view := cache.New(mem, cache.Options{Log: quiet})
	mesh := discovery.New(discovery.Options{Source: view})
	ts := httptest.NewServer(asDescribed(t, server.New(server.Options{
		Store: store.Strict(mem), Reads: view, Discovery: mesh, Log: quiet,
		Ready: []server.Check{{Name: "discovery", Run: func(context.Context) error {
			if !mesh.Ready() {
				return discovery.ErrNotReady
			}
			return nil
		}}},
	}).Handler()))
	t.Cleanup(ts.Close)

	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	go func() { ended <- view.Run(ctx) }()
	go func() { ended <- mesh.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-ended; <-ended })
	w := &World{T: t, URL: ts.URL}
	for w.Do("GET", "/readyz", "").StatusCode != http.StatusOK {
		if ctx.Err() != nil {
			t.Fatal("nothing was ever compiled")
		}
	}
	return ts.URL
}
