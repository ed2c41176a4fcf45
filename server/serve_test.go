package server_test

import (
	"github.com/pilot-api/pilot-api/server/servertest"

	"context"
	"errors"
	"fmt"
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
)

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
	w, addr, stop := servertest.Serve(t, func(o *server.Options) {
		gate.Interface, o.Store = o.Store, &gate
	})
	watch := w.Watch("&allowWatchBookmarks=true")
	created := make(chan int)
	go func() {
		created <- w.Do("POST", servertest.RulesPath, servertest.Rule("late", 100), servertest.AsYAML).StatusCode
	}()
	<-gate.entered
	ended := make(chan error)
	go func() { ended <- stop() }()
	watch.Want("BOOKMARK")
	watch.WantEnd()
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
		w := servertest.Start(t, func(o *server.Options) { o.Store = broken{o.Store, c.err} })
		got := w.Want(c.code, "POST", servertest.RulesPath, servertest.Rule("a", 100), servertest.AsYAML)
		if st := got.Failure(t); st.Reason != c.reason || strings.Contains(got.Text, "secret") || strings.Contains(got.Text, "bug") {
			t.Errorf("%v: %s", c.err, got.Text)
		}
		if (got.Header.Get("Retry-After") != "") != (c.code == 503) || got.Header.Get("X-Request-Id") == "" {
			t.Errorf("%v: headers %v", c.err, got.Header)
		}
	}
	w := servertest.Start(t, func(o *server.Options) { o.Reads = broken{Interface: o.Store} })
	w.Want(http.StatusServiceUnavailable, "GET", servertest.RulesPath+"/a?timeout=10ms", "")
}

func TestHealthAndReadiness(t *testing.T) {
	var trouble error
	w := servertest.Start(t, func(o *server.Options) {
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
		if got := w.Want(c.code, "GET", c.path, "").Text; got != c.want {
			t.Errorf("%s with %v: got %q, want %q", c.path, c.trouble, got, c.want)
		}
	}
}

func TestMetrics(t *testing.T) {
	reg := prometheus.NewRegistry()
	w := servertest.Start(t, func(o *server.Options) { o.Registry = reg })
	w.Create("a")
	w.Do("GET", servertest.RulesPath+"/a", "")
	w.Do("GET", servertest.RulesPath+"/b", "")
	w.Do("GET", "/made/up", "")
	w.Do("BREW", servertest.RulesPath, "")
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
	watch := w.Watch("")
	watch.Want("ADDED a")
	if got := w.Want(http.StatusOK, "GET", "/metrics", "").Text; !strings.Contains(got, "pilot_watchers 1") {
		t.Errorf("no watcher counted in\n%s", got)
	}
}

func TestIndexAndVersion(t *testing.T) {
	w := servertest.Start(t)
	for path, holds := range map[string]string{
		"/":        "/healthz",
		"/version": "v0.1.0-test",
		"/apis":    "networking.istio.io",
		"/api":     "APIVersions",
	} {
		if got := w.Want(http.StatusOK, "GET", path, "").Text; !strings.Contains(got, holds) {
			t.Errorf("%s: no %q in %s", path, holds, got)
		}
	}
}
