package intake_test

import (
	"github.com/pilot-api/pilot-api/server/servertest"

	"net/http"
	"strings"
	"testing"

	"github.com/pilot-api/pilot-api/internal/outside"
)

// TestCharsets checks that everything that accepts a body refuses an unsupported
// charset: all endpoints of the OpenAPI documents, and the polls.
func TestCharsets(t *testing.T) {
	outside.Slow(t)
	w := servertest.Followed(t)
	type endpoint struct{ method, path, media string }
	var takers []endpoint
	for _, doc := range servertest.Described() {
		for path, item := range doc.Paths.Map() {
			path = strings.NewReplacer("{namespace}", "default", "{name}", "a", "{node}", "a", "{revision}", "1").Replace(path)
			for method, op := range item.Operations() {
				if op.RequestBody == nil {
					continue
				}
				for media := range op.RequestBody.Value.Content {
					takers = append(takers, endpoint{method, path, media})
				}
			}
		}
	}
	if len(takers) < 50 {
		t.Fatalf("the documents tell of %d bodies only", len(takers))
	}
	for _, kind := range []string{"clusters", "endpoints", "listeners", "routes", "secrets"} {
		takers = append(takers, endpoint{http.MethodPost, "/v3/discovery:" + kind, "application/json"})
	}
	for _, e := range takers {
		for parameter, refused := range map[string]bool{
			"": false, "; charset=utf-8": false, `; charset="UTF-8"`: false, "; charset=US-ASCII": false, "; version=1": false,
			"; charset=iso-8859-1": true, "; Charset=UTF-16": true, "; charset=": true, "; charset=utf-8; charset=utf-16": true,
		} {
			for _, body := range []string{"{", `{"node":{"id":"` + sidecarNode + `"}}`} {
				a := w.Do(e.method, e.path, body, "Content-Type: "+e.media+parameter)
				if got := a.StatusCode == http.StatusUnsupportedMediaType; got != refused {
					t.Fatalf("%s %s with %q: %d %s", e.method, e.path, e.media+parameter, a.StatusCode, a.Text)
				}
				if refused && !strings.Contains(a.Text, "Content-Type: ") {
					t.Errorf("%s %s with %q does not say why: %s", e.method, e.path, e.media+parameter, a.Text)
				}
			}
		}
	}
}

const sidecarNode = "sidecar~127.0.0.1~a.default~default.svc.cluster.local"
