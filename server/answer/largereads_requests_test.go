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

	"github.com/pilot-api/pilot-api/server"
	"github.com/pilot-api/pilot-api/server/admission"
	"github.com/pilot-api/pilot-api/store"
	"github.com/pilot-api/pilot-api/store/memory"
)

// TestLargeHistoriesWaitTheirTurn checks that while the share of large answers is
// spent, large histories and changes are answered 429, and small ones at once.
func TestLargeHistoriesWaitTheirTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		long := admission.NewLongReads(2)
		objects := memory.New()
		s := server.New(server.Options{Store: objects, Reads: objects, LongReads: long})
		ask := func(method, path, body string) *httptest.ResponseRecorder {
			r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
			r.Host = "localhost"
			r.Header.Set("Content-Type", "application/yaml")
			if method == "PATCH" {
				r.Header.Set("Content-Type", "application/apply-patch+yaml")
			}
			w := httptest.NewRecorder()
			s.Handler().ServeHTTP(w, r)
			return w
		}
		const changes = "/apis/registry.istio.io/v1/changes?since=1&kind=RouteRule&namespace=default&name="
		for _, text := range []string{servertest.Rule("first", 1), servertest.LargeRule("large"), servertest.Rule("small", 1)} {
			if w := ask("POST", servertest.RulesPath, text); w.Code != http.StatusCreated {
				t.Fatal(w.Body)
			}
			time.Sleep(time.Minute) // for the turn of the next one
		}
		paths := []struct {
			path  string
			large bool
		}{
			{servertest.RulesPath + "/small/history", false}, {changes + "small", false},
			{servertest.RulesPath + "/large/history", true}, {changes + "large", true},
		}
		for range 2 { // The second time it is known to be large.
			leave, err := long.Enter(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, one := range paths {
				begin, code := time.Now(), http.StatusOK
				if one.large {
					code = http.StatusTooManyRequests
				}
				w := ask("GET", one.path, "")
				if waited := time.Since(begin); w.Code != code || (waited > 0) != one.large || (w.Header().Get("Retry-After") != "") != one.large {
					t.Errorf("%s was answered %d after %v, want %d", one.path, w.Code, waited, code)
				}
			}
			leave()
		}
		// An apply to an object without managedFields reads the history.
		leave, err := long.Enter(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for name, code := range map[string]int{"small": http.StatusOK, "large": http.StatusTooManyRequests} {
			if w := ask("PATCH", servertest.RulesPath+"/"+name+"?fieldManager=me&force=true", servertest.Part(name)); w.Code != code {
				t.Errorf("the apply of %s was answered %d, want %d: %s", name, w.Code, code, w.Body)
			}
		}
		leave()
		time.Sleep(24 * time.Hour)
		for _, one := range paths {
			if w := ask("GET", one.path, ""); w.Code != http.StatusOK {
				t.Errorf("%s was answered %d later: %s", one.path, w.Code, w.Body)
			}
		}
	})
}

// TestChangesWithoutALimitAreBounded checks the bound in bytes, and that pages have
// all changes.
func TestChangesWithoutALimitAreBounded(t *testing.T) {
	w := servertest.Start(t)
	const changes = "/apis/registry.istio.io/v1/changes?since=1"
	large := strings.Repeat("x", 200<<10)
	for i := range store.MaxChangesPage/len(large) + 2 {
		w.Want(http.StatusCreated, "POST", servertest.RulesPath, servertest.Rule(fmt.Sprintf("large-%d", i), 100, "annotations:", "  payload: "+large), servertest.AsYAML)
	}
	if got := w.Want(http.StatusRequestEntityTooLarge, "GET", changes, ""); !strings.Contains(got.Text, "limit") {
		t.Errorf("the answer does not say what to ask for: %s", got.Text)
	}
	w.Want(http.StatusOK, "GET", changes+"&namespace=other", "")
	if got := w.Want(http.StatusOK, "GET", changes+"&limit=1000", ""); !strings.Contains(got.Text, `"continue"`) {
		t.Error("there is no next page")
	}
}
