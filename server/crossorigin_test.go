package server_test

import (
	"github.com/pilot-api/pilot-api/server/servertest"

	"net/http"
	"strings"
	"testing"

	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/server"
)

// TestWebPages sends what browsers send for pages.
func TestWebPages(t *testing.T) {
	w, addr, _ := servertest.Serve(t, nil)
	_, port, _ := strings.Cut(addr, ":")
	for _, c := range []struct {
		name, method, path, host string
		code                     int
		headers                  []string
	}{
		{"another site", "POST", servertest.RulesPath, addr, 403, []string{servertest.AsYAML, "Origin: http://evil.example"}},
		{"another site, as newer browsers say it", "POST", servertest.RulesPath, addr, 403, []string{servertest.AsYAML, "Sec-Fetch-Site: cross-site"}},
		{"another port", "DELETE", servertest.RulesPath + "/a", addr, 403, []string{"Origin: http://127.0.0.1:1"}},
		{"the counts", "POST", "/cache_stats_delete", addr, 403, []string{"Origin: http://evil.example"}},
		{"a name that was rebound", "POST", servertest.RulesPath, "evil.example:" + port, 403, []string{servertest.AsYAML, "Origin: http://evil.example:" + port}},
		{"reading by a rebound name", "GET", servertest.RulesPath, "evil.example:" + port, 403, nil},
		{"reading by an address", "GET", servertest.RulesPath, "192.0.2.1", 403, nil},
		{"a link", "GET", servertest.RulesPath, addr, 200, []string{"Sec-Fetch-Site: cross-site"}},
		{"an own page", "POST", servertest.RulesPath, addr, 201, []string{servertest.AsYAML, "Origin: http://" + addr, "Sec-Fetch-Site: same-origin"}},
		{"no browser", "DELETE", servertest.RulesPath + "/a", addr, 200, nil},
		{"localhost", "GET", servertest.RulesPath, "LOCALHOST:" + port, 200, nil},
		{"IPv6", "GET", servertest.RulesPath, "[::1]:" + port, 200, nil},
		{"no port", "GET", servertest.RulesPath, "127.0.0.2", 200, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			body := ""
			if c.method == "POST" {
				body = servertest.Rule("a", 100)
			}
			got := w.Do(c.method, c.path, body, append(c.headers, "Host: "+c.host)...)
			if got.StatusCode != c.code {
				t.Fatalf("got %d, want %d: %s", got.StatusCode, c.code, got.Text)
			}
			if c.code == http.StatusForbidden {
				got.Failure(t)
			}
		})
	}
}

// TestContentTypeIsNeeded checks that writes need a Content-Type. Otherwise a form
// of any web page would be a write that browsers allow.
func TestContentTypeIsNeeded(t *testing.T) {
	w := servertest.Start(t)
	w.Create("a")
	for _, c := range []struct{ method, path, body, says string }{
		{"POST", servertest.RulesPath, servertest.Rule("b", 100), "application/yaml"},
		{"PUT", servertest.RulesPath + "/a", servertest.Rule("a", 100), "application/yaml"},
		{"PATCH", servertest.RulesPath + "/a", `{"spec":{"precedence":2}}`, "application/merge-patch+json"},
		{"DELETE", servertest.RulesPath + "/a", `{"dryRun":["All"]}`, "application/json"},
	} {
		st := w.Want(http.StatusUnsupportedMediaType, c.method, c.path, c.body).Failure(t)
		if !strings.Contains(st.Message, c.says) {
			t.Errorf("%s: no %q in %s", c.method, c.says, st.Message)
		}
	}
	st := w.Want(http.StatusUnsupportedMediaType, "POST", servertest.RulesPath, servertest.Rule("b", 100), servertest.AsYAML, "Content-Encoding: gzip").Failure(t)
	if !strings.Contains(st.Message, "gzip") {
		t.Errorf("got %s", st.Message)
	}
	w.Want(http.StatusOK, "DELETE", servertest.RulesPath+"/a", "")
}

// TestPagesLearnNoConfiguration checks that pages cannot ask for configuration: the
// server keeps every caller as a proxy, so even an image of a page would do harm.
func TestPagesLearnNoConfiguration(t *testing.T) {
	w, addr, _ := servertest.Serve(t, func(o *server.Options) {
		o.Discovery, o.HostNames = discovery.New(discovery.Options{Source: servertest.Nothing{}}), []string{"mesh.example.com"}
	})
	_, port, _ := strings.Cut(addr, ":")
	const path = "/v1/clusters/web/sidecar~10.1.0.1~x~default.svc.cluster.local"
	for _, c := range []struct {
		name, host string
		code       int
		headers    []string
	}{
		{"by address", addr, 503, nil},
		{"as an Envoy", "pilot-api", 503, nil},
		{"as an old Envoy", "rds", 503, nil},
		{"behind a port that is forwarded", "192.0.2.1:" + port, 503, nil},
		{"IPv6", "[::1]:" + port, 503, nil},
		{"a name that was given", "MESH.example.com.:" + port, 503, nil},
		{"a person", addr, 503, []string{"Sec-Fetch-Site: none"}},
		{"an own page", addr, 503, []string{"Sec-Fetch-Site: same-origin"}},
		{"a name that was rebound", "evil.example:" + port, 403, nil},
		{"an image", addr, 403, []string{"Sec-Fetch-Site: cross-site"}},
		{"an image of another port", addr, 403, []string{"Sec-Fetch-Site: same-site"}},
	} {
		if got := w.Do("GET", path, "", append(c.headers, "Host: "+c.host)...); got.StatusCode != c.code {
			t.Errorf("%s: got %d, want %d: %s", c.name, got.StatusCode, c.code, got.Text)
		}
	}
	w.Want(http.StatusOK, "GET", servertest.RulesPath, "", "Host: mesh.example.com:"+port)
}
