package rest

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/go-chi/chi/v5"
	"google.golang.org/protobuf/encoding/protojson"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/schema"
)

// fixed is a source whose objects never change.
type fixed []*schema.Object

func (f fixed) Snapshot() ([]*schema.Object, int64, bool) { return f, 1, len(f) > 0 }
func (fixed) Since(int64) ([]schema.Change, int64, bool)  { return nil, 0, false }
func (f fixed) Changed() <-chan struct{}                  { return nil }
func (f fixed) Err() error                                { return nil }

// published returns a discovery server that has published objs, if any.
func published(t testing.TB, objs ...*schema.Object) *discovery.Publisher {
	d := discovery.New(discovery.Options{Source: fixed(objs)})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	// Run publishes what is there before it checks the context.
	if err := d.Run(ctx); err != context.Canceled || d.Ready() != (len(objs) > 0) {
		t.Fatalf("discovery: %v, ready %v", err, d.Ready())
	}
	return d
}

func webService(t testing.TB) *schema.Object {
	kind, _ := schema.KindByName("ServiceEntry")
	o, err := schema.New(kind, metav1.ObjectMeta{Name: "web", Namespace: "default"}, []byte(
		`{"hosts":["web.example"],"location":"MESH_INTERNAL","resolution":"STATIC","ports":[{"number":80,"name":"http","protocol":"HTTP"}],`+
			`"endpoints":[{"address":"10.1.0.1","ports":{"http":8080},"locality":"region/zone","labels":{"version":"v1"}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// envoys serves the discovery paths of d and returns their base URL.
func envoys(t *testing.T, d *discovery.Publisher) string {
	r := chi.NewRouter()
	Mount(r, d, Sockets{}, nil, slog.New(slog.DiscardHandler))
	s := httptest.NewServer(r)
	t.Cleanup(s.Close)
	return s.URL
}

func send(t *testing.T, method, url, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

func TestV1Paths(t *testing.T) {
	url := envoys(t, published(t, webService(t)))
	cases := []struct {
		path string
		code int
		part string
	}{
		{"/v1/clusters/web/" + pollingNode, 200, `"name":"out.web.example|http"`},
		{"/v1/listeners/web/" + pollingNode, 200, `"name":"http_0.0.0.0_80"`},
		{"/v1/routes/80/web/" + pollingNode, 200, `"cluster":"out.web.example|http"`},
		{"/v1/routes/8123/web/" + pollingNode, 200, `"virtual_hosts":[]`},
		{"/v1/registration/web.example|http|version=v1", 200, `"ip_address":"10.1.0.1"`},
		{"/v1/registration/web.example%7Chttp%7Cversion=v1", 200, `"ip_address":"10.1.0.1"`},
		{"/v1/registration/web.example%7Chttp%7Cversion%3Da%2Fb", 200, `{"hosts":[]}`},
		{"/v1/registration/nobody", 200, `{"hosts":[]}`},
		{"/v1/registration", 200, `[{"service-key":"web.example|http","hosts":[{`},
		{"/v1/registration/", 200, `[{"service-key":"web.example|http","hosts":[{`},
		{"/v1/az/web/sidecar~10.1.0.1~web-1.default~default.svc.cluster.local", 200, "region/zone"},
		{"/v1/az/web/sidecar~10.9.9.9~web-1.default~default.svc.cluster.local", 404, "AvailabilityZone couldn't find the given cluster node"},
		{"/v1/az/web/nobody", 404, "AvailabilityZone bad node"},
		{"/v1/routes/http/web/" + pollingNode, 503, "port number"},
		{"/v1/clusters/web/nobody", 404, "role~ip~id~domain"},
		{"/v1/clusters/web", 404, ""},
		{"/v1/clusters/", 404, ""},
		{"/v1/routes/", 404, ""},
	}
	for _, c := range cases {
		code, text := send(t, http.MethodGet, url+c.path, "")
		if code != c.code || !strings.Contains(text, c.part) {
			t.Errorf("GET %s: %d %s, want %d and %q", c.path, code, text, c.code, c.part)
		}
	}
}

func TestV3Polls(t *testing.T) {
	url := envoys(t, published(t, webService(t)))
	good := string(envoyPoll("", envoyNode(pollingNode, 3), "", discovery.ClusterType))
	cases := []struct {
		about, method, path, body string
		code                      int
		part                      string
	}{
		{"clusters", "POST", "clusters", good, 200, `"name":"out.web.example|http"`},
		{"an older version", "POST", "clusters", string(envoyPoll("old", envoyNode(pollingNode, 3), "", discovery.ClusterType)), 200, `"resources":[{`},
		{"endpoints", "POST", "endpoints", string(envoyPoll("", envoyNode(pollingNode, 3), `"web.example|http"`, discovery.EndpointType)), 200, `"cluster_name":"web.example|http"`},
		{"no type_url", "POST", "routes", `{"node":{"id":"` + pollingNode + `"}}`, 200, `"name":"80"`},
		{"listeners", "POST", "listeners", `{"node":{"id":"` + pollingNode + `"}}`, 200, `"name":"virtual"`},
		{"a type of another path", "POST", "listeners", good, 400, "does not belong to this path"},
		{"many names", "POST", "endpoints", string(envoyPoll("", envoyNode(pollingNode, 3), `"a"`+strings.Repeat(`,"a"`, 99), discovery.EndpointType)), 200, `"cluster_name":"a"`},
		{"too many names", "POST", "endpoints", string(envoyPoll("", envoyNode(pollingNode, 3), `"a"`+strings.Repeat(`,"a"`, 100), discovery.EndpointType)), 400, "101 entries, the most allowed are 100"},
		{"no JSON", "POST", "clusters", "clusters: all", 400, "no DiscoveryRequest in JSON"},
		{"no node", "POST", "clusters", `{}`, 404, "role~ip~id~domain"},
		{"a method that changes nothing", "GET", "clusters", "", 405, ""},
		{"a type that is not served", "POST", "runtime", good, 404, ""},
		{"too large", "POST", "clusters", strings.Repeat(" ", maxPoll+1), 413, "larger than 1048576 bytes"},
	}
	for _, c := range cases {
		code, text := send(t, c.method, url+"/v3/discovery:"+c.path, c.body)
		if code != c.code || !strings.Contains(text, c.part) {
			t.Errorf("%s: %d %.300s, want %d and %q", c.about, code, text, c.code, c.part)
		}
	}
}

// TestEndlessPoll checks that a body of unknown length is bounded as well.
func TestEndlessPoll(t *testing.T) {
	url := envoys(t, published(t, webService(t)))
	body := io.LimitReader(neverEnding(' '), 5<<20)
	resp, err := http.Post(url+"/v3/discovery:clusters", "application/json", body)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("status %s, want 413", resp.Status)
	}
}

type neverEnding byte

func (c neverEnding) Read(p []byte) (int, error) {
	return copy(p, bytes.Repeat([]byte{byte(c)}, len(p))), nil
}

// TestNotModified checks that only an Envoy that has exactly this answer gets 304.
func TestNotModified(t *testing.T) {
	url := envoys(t, published(t, webService(t)))
	ask := func(version, names string) (int, string) {
		code, text := send(t, http.MethodPost, url+"/v3/discovery:endpoints",
			string(envoyPoll(version, envoyNode(pollingNode, 3), names, discovery.EndpointType)))
		var response discoveryv3.DiscoveryResponse
		if code == http.StatusOK {
			if err := protojson.Unmarshal([]byte(text), &response); err != nil {
				t.Fatal(err)
			}
		}
		return code, response.GetVersionInfo()
	}
	const web, versioned = `"web.example|http"`, `"web.example|http|version=v1"`
	_, version := ask("", web)
	for _, c := range []struct {
		version, names string
		code           int
	}{
		{version, web, http.StatusNotModified},
		{"", web, http.StatusOK},
		{"old", web, http.StatusOK},
		{version, versioned, http.StatusOK},
		// A set that is empty: the proxy may still route there, and keeps what it has for a
		// while (docs/decisions/006-discovery.md).
		{"", `"nobody"`, http.StatusOK},
		{"old", `"nobody"`, http.StatusNotModified},
	} {
		if code, _ := ask(c.version, c.names); code != c.code {
			t.Errorf("version %q, names %s: %d, want %d", c.version, c.names, code, c.code)
		}
	}
}

// TestNotReady checks that before the first snapshot no Envoy gets an empty answer.
func TestNotReady(t *testing.T) {
	url := envoys(t, published(t))
	for _, path := range []string{"clusters/web/" + pollingNode, "listeners/web/" + pollingNode, "routes/80/web/" + pollingNode, "registration/web.example|http"} {
		if code, text := send(t, http.MethodGet, url+"/v1/"+path, ""); code != 503 || !strings.Contains(text, "no configuration") {
			t.Errorf("v1 %s: %d %s, want 503", path, code, text)
		}
	}
	for _, path := range []string{"clusters", "endpoints", "listeners", "routes"} {
		body := `{"node":{"id":"` + pollingNode + `"}}`
		if code, text := send(t, http.MethodPost, url+"/v3/discovery:"+path, body); code != 503 || !strings.Contains(text, "no configuration") {
			t.Errorf("v3 %s: %d %s, want 503", path, code, text)
		}
	}
}
