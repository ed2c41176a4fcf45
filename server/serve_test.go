package server_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/server"
	"github.com/pilot-api/pilot-api/store"
	"github.com/pilot-api/pilot-api/store/memory"
)

// serve runs the real Serve. stop stops it and returns its error.
func serve(t *testing.T, change func(*server.Options)) (w *world, addr string, stop func() error) {
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
	return &world{T: t, store: mem, url: "http://" + addr}, addr, stop
}

// slow is a store whose creates wait until they are released.
type slow struct {
	store.Interface
	entered, release chan struct{}
}

func (s slow) Create(ctx context.Context, obj *schema.Object) (*schema.Object, error) {
	close(s.entered)
	<-s.release
	return s.Interface.Create(ctx, obj)
}

// TestShutdown checks that watches end with a bookmark, that running requests
// finish and that new ones are refused.
func TestShutdown(t *testing.T) {
	gate := slow{entered: make(chan struct{}), release: make(chan struct{})}
	w, addr, stop := serve(t, func(o *server.Options) {
		gate.Interface, o.Store = o.Store, &gate
	})
	watch := w.watch("&allowWatchBookmarks=true")
	created := make(chan int)
	go func() { created <- w.do("POST", rulesPath, rule("late", 100), asYAML).StatusCode }()
	<-gate.entered
	ended := make(chan error)
	go func() { ended <- stop() }()
	watch.want("BOOKMARK")
	watch.wantEnd()
	close(gate.release)
	if code := <-created; code != http.StatusCreated {
		t.Errorf("the running request got %d", code)
	}
	if err := <-ended; err != nil {
		t.Errorf("Serve: %v", err)
	}
	if _, err := net.Dial("tcp", addr); err == nil {
		t.Error("the port is still open")
	}
}

func TestServeFails(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ln.Close()
	err = server.New(server.Options{}).Serve(t.Context(), ln)
	if err == nil || !strings.Contains(err.Error(), ln.Addr().String()) {
		t.Errorf("got %v, want an error that names the address", err)
	}
}

// broken is a store that fails.
type broken struct {
	store.Interface
	err error
}

func (b broken) Create(context.Context, *schema.Object) (*schema.Object, error) {
	if b.err == nil {
		panic("a bug")
	}
	return nil, b.err
}

func (b broken) Get(ctx context.Context, _ schema.Key, _ store.ReadOptions) (*schema.Object, error) {
	<-ctx.Done()
	return nil, &store.Error{Kind: store.ErrUnavailable, Cause: ctx.Err()}
}

func TestStoreTrouble(t *testing.T) {
	for _, c := range []struct {
		err    error
		code   int
		reason metav1.StatusReason
	}{
		{&store.Error{Kind: store.ErrUnavailable, Cause: errors.New("secret address")}, 503, metav1.StatusReasonServiceUnavailable},
		{fmt.Errorf("secret address"), 500, metav1.StatusReasonInternalError},
		{nil, 500, metav1.StatusReasonInternalError},
	} {
		w := start(t, func(o *server.Options) { o.Store = broken{o.Store, c.err} })
		got := w.want(c.code, "POST", rulesPath, rule("a", 100), asYAML)
		if st := got.status(t); st.Reason != c.reason || strings.Contains(got.text, "secret") || strings.Contains(got.text, "bug") {
			t.Errorf("%v: %s", c.err, got.text)
		}
		if (got.Header.Get("Retry-After") != "") != (c.code == 503) || got.Header.Get("X-Request-Id") == "" {
			t.Errorf("%v: headers %v", c.err, got.Header)
		}
	}
	w := start(t, func(o *server.Options) { o.Reads = broken{Interface: o.Store} })
	w.want(http.StatusServiceUnavailable, "GET", rulesPath+"/a?timeout=10ms", "")
}

func TestHealthAndReadiness(t *testing.T) {
	var trouble error
	w := start(t, func(o *server.Options) {
		o.Ready = []server.Check{
			{Name: "store", Run: func(context.Context) error { return nil }},
			{Name: "cache-lag", Run: func(context.Context) error { return trouble }},
		}
	})
	for _, c := range []struct {
		path    string
		trouble error
		code    int
		want    string
	}{
		{"/healthz", nil, 200, "ok\n"},
		{"/livez", nil, 200, "ok\n"},
		{"/livez?verbose", nil, 200, "[+]ping ok\nlivez check passed\n"},
		{"/readyz", nil, 200, "ok\n"},
		{"/readyz?verbose", nil, 200, "[+]ping ok\n[+]store ok\n[+]cache-lag ok\nreadyz check passed\n"},
		{"/readyz", errors.New("not synced yet"), 503, "[+]ping ok\n[+]store ok\n[-]cache-lag failed: not synced yet\nreadyz check failed\n"},
		{"/livez", errors.New("not synced yet"), 200, "ok\n"},
		{"/healthz", errors.New("not synced yet"), 200, "ok\n"},
		{"/readyz", server.Degraded("a bit late"), 200, "ok\n"},
		{"/readyz?verbose", server.Degraded("a bit late"), 200, "[+]ping ok\n[+]store ok\n[!]cache-lag degraded: a bit late\nreadyz check passed\n"},
	} {
		trouble = c.trouble
		if got := w.want(c.code, "GET", c.path, "").text; got != c.want {
			t.Errorf("%s with %v: got %q, want %q", c.path, c.trouble, got, c.want)
		}
	}
}

func TestMetrics(t *testing.T) {
	reg := prometheus.NewRegistry()
	w := start(t, func(o *server.Options) { o.Registry = reg })
	w.create("a")
	w.do("GET", rulesPath+"/a", "")
	w.do("GET", rulesPath+"/b", "")
	w.do("GET", "/made/up", "")
	w.do("BREW", rulesPath, "")
	const route = "/apis/config.istio.io/v1alpha2/namespaces/{namespace}/routerules"
	want := `
# HELP pilot_http_requests_total Requests answered, by method, route pattern and status code.
# TYPE pilot_http_requests_total counter
pilot_http_requests_total{code="200",method="GET",route="` + route + `/{name}"} 1
pilot_http_requests_total{code="201",method="POST",route="` + route + `"} 1
pilot_http_requests_total{code="404",method="GET",route="` + route + `/{name}"} 1
pilot_http_requests_total{code="404",method="GET",route="none"} 1
pilot_http_requests_total{code="405",method="other",route="none"} 1
`
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want), "pilot_http_requests_total"); err != nil {
		t.Error(err)
	}
	watch := w.watch("")
	watch.want("ADDED a")
	if got := w.want(http.StatusOK, "GET", "/metrics", "").text; !strings.Contains(got, "pilot_watchers 1") {
		t.Errorf("no watcher counted in\n%s", got)
	}
}

func TestIndexAndVersion(t *testing.T) {
	w := start(t)
	for path, holds := range map[string]string{
		"/":        "/healthz",
		"/version": "v0.1.0-test",
		"/apis":    "networking.istio.io",
		"/api":     "APIVersions",
	} {
		if got := w.want(http.StatusOK, "GET", path, "").text; !strings.Contains(got, holds) {
			t.Errorf("%s: no %q in %s", path, holds, got)
		}
	}
}
