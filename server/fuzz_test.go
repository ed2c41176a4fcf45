package server_test

import (
	"github.com/pilot-api/pilot-api/server/servertest"

	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/server"
	"github.com/pilot-api/pilot-api/store"
	"github.com/pilot-api/pilot-api/store/memory"
)

// The fuzz targets of this file check what the server promises for all requests: no
// panic, no 5xx except for a revision that is still to come, and every error is a
// Status. TestHostileBodies checks the cost of hostile bodies.

// target is a server with one rule, whose answers are checked.
type target struct {
	http.Handler
}

func newTarget(f testing.TB) target {
	f.Helper()
	mem := memory.New()
	s := target{server.New(server.Options{Store: store.Strict(mem), Reads: mem, RevisionTimeout: time.Millisecond, Log: slog.New(slog.DiscardHandler)}).Handler()}
	if got := s.serve(http.MethodPost, servertest.RulesPath, servertest.AsYAML, servertest.Rule("there", 1)); got.Code != http.StatusCreated {
		f.Fatal(got.Code, got.Body)
	}
	return s
}

func (s target) serve(method, path, contentType, body string) *httptest.ResponseRecorder {
	name, value, _ := strings.Cut(contentType, ": ")
	req := httptest.NewRequest(method, "http://localhost/", strings.NewReader(body))
	req.URL.Path, req.URL.RawQuery, _ = strings.Cut(path, "?")
	req.Header.Set(name, value)
	rec := httptest.NewRecorder()
	s.ServeHTTP(rec, req)
	return rec
}

// judge sends a request, checks the answer and returns its code.
func (s target) judge(t *testing.T, method, path, contentType, body string) int {
	t.Helper()
	got := s.serve(method, path, contentType, body)
	if got.Code >= 500 && !toCome(got) {
		t.Fatalf("%s %q with %q: %d %s", method, path, body, got.Code, got.Body)
	}
	var status metav1.Status
	if got.Code >= 400 && method != http.MethodHead &&
		(json.Unmarshal(got.Body.Bytes(), &status) != nil || int(status.Code) != got.Code || status.Message == "") {
		t.Fatalf("%s %q with %q: %d without a Status: %s", method, path, body, got.Code, got.Body)
	}
	return got.Code
}

// toCome reports whether a read was refused because its revision is not reached.
func toCome(got *httptest.ResponseRecorder) bool {
	return got.Code == http.StatusGatewayTimeout && got.Header().Get("Retry-After") != "" && strings.Contains(got.Body.String(), "ResourceVersionTooLarge")
}

// FuzzPatch checks that the object made by an accepted patch is accepted as a whole
// object.
func FuzzPatch(f *testing.F) {
	s := newTarget(f)
	for _, patch := range []string{
		`{"spec":{"precedence":7}}`, `{"metadata":{"labels":{"a":null}}}`, `{"metadata":{"name":"other"}}`, `{"spec":null}`, `null`, `[]`,
	} {
		f.Add("merge-patch", patch)
	}
	for _, patch := range []string{
		`[{"op":"add","path":"/spec/route/-","value":{"weight":5}}]`, `[{"op":"move","from":"/spec","path":"/spec/route"}]`,
		`[{"op":"copy","from":"/spec","path":"/spec/a"}]`, `[{"op":"test","path":"/spec/route/99999999999","value":0}]`, `[{"op":"remove","path":""}]`, `{}`,
	} {
		f.Add("json-patch", patch)
	}
	f.Fuzz(func(t *testing.T, kind, patch string) {
		path := servertest.RulesPath + "/there?dryRun=All"
		if s.judge(t, http.MethodPatch, path, "Content-Type: application/"+kind+"+json", patch) != http.StatusOK {
			return
		}
		made := s.serve(http.MethodPatch, path, "Content-Type: application/"+kind+"+json", patch).Body.String()
		if code := s.judge(t, http.MethodPut, path, servertest.AsJSON, made); code != http.StatusOK {
			t.Errorf("%s made of %s what a PUT is refused for: %d", patch, made, code)
		}
	})
}

// FuzzTransaction checks that any transaction is done or refused.
func FuzzTransaction(f *testing.F) {
	s := newTarget(f)
	for _, body := range []string{
		servertest.Transaction(), servertest.Transaction("{}"), servertest.Transaction(servertest.RuleOp("create", "good", 50), servertest.Named("delete", "there", "")),
		servertest.Transaction(servertest.RuleOp("apply", "there", 50, `"resourceVersion":"1"`)),
		servertest.Transaction(servertest.Named("patch", "there", `,"patch":{"spec":{"precedence":7}}`)),
		servertest.Transaction(servertest.Named("delete", "there", `,"preconditions":{"uid":"u"}`)), `{"spec":{"operations":null}}`, `{"operations":[]}`, `[]`,
	} {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body string) {
		s.judge(t, http.MethodPost, servertest.Transactions+"?dryRun=All", servertest.AsJSON, body)
	})
}

// FuzzQuery checks selectors, pages and all other parameters of a list.
func FuzzQuery(f *testing.F) {
	s := newTarget(f)
	for _, query := range []string{
		"labelSelector=a%3Db,c!%3Dd,e+in+(f,g),!h", "fieldSelector=metadata.name%3Dthere", "fieldSelector=metadata.name!%3D", "limit=1", "limit=-1",
		"continue=e30", "resourceVersion=1&resourceVersionMatch=Exact", "resourceVersionMatch=NotOlderThan", "limit=1&limit=2", "pretty=%zz", "freshStatus=true",
	} {
		f.Add(query)
	}
	f.Fuzz(func(t *testing.T, query string) {
		if q, _ := url.ParseQuery(query); q.Has("watch") {
			t.Skip("a watch does not end")
		}
		s.judge(t, http.MethodGet, servertest.RulesPath+"?"+query, servertest.AsJSON, "")
	})
}

// FuzzPath checks any path and method.
func FuzzPath(f *testing.F) {
	s := newTarget(f)
	for _, path := range []string{
		"/", "/apis", "/openapi/v3", "/metrics", servertest.RulesPath, servertest.RulesPath + "/there", servertest.RulesPath + "/there/history", servertest.RulesPath + "/../x", servertest.AllRules,
		"/apis/config.istio.io/v1alpha2/namespaces//routerules", "/v1/routes/80/a/b", "/v3/discovery:clusters", "/apis/registry.istio.io/v1/changes?since=1",
		servertest.Transactions, servertest.Rollbacks, "/apis/registry.istio.io/v1/references", "/readyz?verbose", "//apis", "/%00",
	} {
		for _, method := range []string{"GET", "PUT", "POST", "PATCH", "DELETE", "HEAD", "OPTIONS"} {
			f.Add(method, path, `{"metadata":{"name":"a"}}`)
		}
	}
	f.Fuzz(func(t *testing.T, method, path, body string) {
		req, err := http.NewRequest(method, "http://localhost/", nil)
		if _, query, _ := strings.Cut(path, "?"); err != nil || req.URL == nil || strings.Contains(query, "atch") {
			t.Skip("no request, or a watch, which does not end")
		}
		s.judge(t, method, path, servertest.AsJSON, body)
	})
}
