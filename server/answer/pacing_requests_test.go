package answer_test

import (
	"github.com/pilot-api/pilot-api/server/servertest"

	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/server"
	"github.com/pilot-api/pilot-api/server/admission"
	"github.com/pilot-api/pilot-api/store/memory"
)

// TestLargeAnswersAreEncodedInTurn checks that while the share of large answers is
// spent, answers that must be encoded are answered 429, gzip is left out, and small
// answers and stored bytes are sent at once.
func TestLargeAnswersAreEncodedInTurn(t *testing.T) {
	const table = "application/json;as=Table;v=v1;g=meta.k8s.io"
	synctest.Test(t, func(t *testing.T) {
		long := admission.NewLongReads(2)
		objects := memory.New()
		s := server.New(server.Options{Store: objects, Reads: objects, LongReads: long})
		ask := func(path, accept, encoding string) *httptest.ResponseRecorder {
			r := httptest.NewRequestWithContext(t.Context(), "GET", path, nil)
			r.Host = "localhost"
			r.Header.Set("Accept", accept)
			r.Header.Set("Accept-Encoding", encoding)
			w := httptest.NewRecorder()
			s.Handler().ServeHTTP(w, r)
			return w
		}
		for i := range 300 {
			text := servertest.Rule(fmt.Sprintf("r%d", i), 1, "annotations:", "  payload: "+strings.Repeat("x", 600))
			obj, problems := schema.Decode([]byte(text), schema.Options{})
			if obj == nil {
				t.Fatal(problems)
			}
			if _, err := objects.Create(t.Context(), obj); err != nil {
				t.Fatal(err)
			}
		}
		const gzip, refused = "gzip", http.StatusTooManyRequests
		for _, tc := range []struct {
			path, accept, encoding string
			code                   int
			waits                  bool
			later                  string // the encoding once there is time again
		}{
			{servertest.RulesPath, "application/json", "", http.StatusOK, false, ""},
			{servertest.RulesPath, "application/json", gzip, http.StatusOK, true, gzip},
			{servertest.RulesPath, "application/yaml", "", refused, true, ""},
			{servertest.RulesPath, "application/yaml", gzip, refused, true, gzip},
			{servertest.RulesPath, table, "", refused, true, ""},
			{servertest.RulesPath + "?limit=50", table, "", http.StatusOK, false, ""},
			{servertest.RulesPath + "/r1", "application/yaml", "", http.StatusOK, false, ""},
		} {
			leave, err := long.Enter(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			begin := time.Now()
			w := ask(tc.path, tc.accept, tc.encoding)
			waited := time.Since(begin)
			if w.Code != tc.code || (waited > 0) != tc.waits || (w.Header().Get("Retry-After") != "") != (tc.code == refused) || w.Header().Get("Content-Encoding") != "" {
				t.Errorf("%s in %q %s: answered %d after %v, with %v", tc.path, tc.accept, tc.encoding, w.Code, waited, w.Header())
			}
			leave()
			time.Sleep(24 * time.Hour)
			if w := ask(tc.path, tc.accept, tc.encoding); w.Code != http.StatusOK || w.Header().Get("Content-Encoding") != tc.later {
				t.Errorf("%s in %q %s: later answered %d, with %v", tc.path, tc.accept, tc.encoding, w.Code, w.Header())
			}
		}
	})
}
