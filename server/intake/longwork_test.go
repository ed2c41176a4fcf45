package intake_test

import (
	"github.com/pilot-api/pilot-api/server/servertest"

	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/server"
	"github.com/pilot-api/pilot-api/server/admission"
	"github.com/pilot-api/pilot-api/store/memory"
)

// multiplies returns a small text whose lists multiply to 20 × 20 × (8 + 3) parts.
func multiplies() string {
	var hosts, ports []string
	for i := range 20 {
		hosts = append(hosts, fmt.Sprintf(`"h%d.example"`, i))
		ports = append(ports, fmt.Sprintf(`{"number":%d,"name":"p%d","protocol":"HTTP"}`, 1000+i, i))
	}
	return fmt.Sprintf(`{"apiVersion":"networking.istio.io/v1","kind":"ServiceEntry","metadata":{"name":"many"},"spec":{"resolution":"STATIC","hosts":[%s],"ports":[%s],"endpoints":[{"address":"10.0.0.1"},{"address":"10.0.0.2"},{"address":"10.0.0.3"}]}}`,
		strings.Join(hosts, ","), strings.Join(ports, ","))
}

// TestLargeObjectsWaitTheirTurn checks that while another large object takes its
// time, large objects are answered 429 and change nothing, in any kind of request,
// and all others are answered at once.
func TestLargeObjectsWaitTheirTurn(t *testing.T) {
	const entries = "/apis/networking.istio.io/v1/namespaces/default/serviceentries"
	large := servertest.LargeRule("large")
	patch := fmt.Sprintf(`{"metadata":{"annotations":{"a":%q}}}`, strings.Repeat("x", schema.LargeText))
	operations := fmt.Sprintf(`{"spec":{"operations":[{"verb":"create","object":%s}]}}`, multiplies()) + strings.Repeat(" ", schema.LargeText)
	for _, tc := range []struct {
		name, method, path, media, body string
		code                            int
		waits                           bool
	}{
		{"a small object", "POST", servertest.RulesPath, "application/yaml", servertest.Rule("small", 1), http.StatusCreated, false},
		{"a small change", "PUT", servertest.RulesPath + "/old", "application/yaml", servertest.Rule("old", 2), http.StatusOK, false},
		{"a small patch", "PATCH", servertest.RulesPath + "/old", "application/merge-patch+json", `{"spec":{"precedence":3}}`, http.StatusOK, false},
		{"a deletion", "DELETE", servertest.RulesPath + "/old", "", "", http.StatusOK, false},
		{"a list", "GET", servertest.RulesPath, "", "", http.StatusOK, false},
		{"a large text", "POST", servertest.RulesPath, "application/yaml", large, http.StatusTooManyRequests, true},
		{"a large text whose time ends first", "POST", servertest.RulesPath + "?timeout=5s", "application/yaml", large, http.StatusTooManyRequests, true},
		{"a large change", "PUT", servertest.RulesPath + "/large", "application/yaml", large, http.StatusTooManyRequests, true},
		{"a small text that multiplies", "POST", entries, "application/json", multiplies(), http.StatusTooManyRequests, true},
		{"a large patch", "PATCH", servertest.RulesPath + "/old", "application/merge-patch+json", patch, http.StatusTooManyRequests, true},
		{"a large preview", "POST", "/apis/registry.istio.io/v1/preview", "application/yaml", large, http.StatusTooManyRequests, true},
		{"a preview of what multiplies", "POST", "/apis/registry.istio.io/v1/preview", "application/json", multiplies(), http.StatusTooManyRequests, true},
		{"a large transaction", "POST", "/apis/registry.istio.io/v1/transactions", "application/json", operations, http.StatusTooManyRequests, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				long := admission.NewLong(2)
				objects := memory.New()
				s := server.New(server.Options{Store: objects, Reads: objects, Long: long, Discovery: discovery.New(discovery.Options{Source: servertest.Nothing{}})})
				ask := func(method, path, media, body string) *httptest.ResponseRecorder {
					r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
					r.Host = "localhost"
					r.Header.Set("Content-Type", media)
					w := httptest.NewRecorder()
					s.Handler().ServeHTTP(w, r)
					return w
				}
				if w := ask("POST", servertest.RulesPath, "application/yaml", servertest.Rule("old", 1)); w.Code != http.StatusCreated {
					t.Fatal(w.Body)
				}
				before, err := objects.Revision(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				leave, err := long.Enter(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				defer leave()
				begin := time.Now()
				w := ask(tc.method, tc.path, tc.media, tc.body)
				if w.Code != tc.code {
					t.Errorf("answered %d, want %d: %s", w.Code, tc.code, w.Body)
				}
				if waited := time.Since(begin); (waited > 0) != tc.waits {
					t.Errorf("answered after %v", waited)
				}
				after, err := objects.Revision(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if tc.waits && (after != before || w.Header().Get("Retry-After") == "") {
					t.Errorf("revision %d is now %d; Retry-After: %q", before, after, w.Header().Get("Retry-After"))
				}
			})
		})
	}
}
