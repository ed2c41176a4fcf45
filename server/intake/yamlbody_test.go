package intake_test

import (
	"github.com/pilot-api/pilot-api/server/servertest"

	"net/http"
	"strings"
	"testing"
)

// TestYAMLInBraces checks that YAML which begins like JSON is YAML, if the
// Content-Type says so.
func TestYAMLInBraces(t *testing.T) {
	w := servertest.Start(t)
	const text = `{apiVersion: config.istio.io/v1alpha2, kind: RouteRule, metadata: {name: a}, spec: {destination: {name: reviews}, precedence: 3}}`
	const apply = "Content-Type: application/apply-patch+"
	w.Want(http.StatusCreated, "POST", servertest.RulesPath, text, servertest.AsYAML)
	w.Want(http.StatusOK, "PATCH", servertest.RulesPath+"/a?fieldManager=me&force=true", text, apply+"yaml")
	for _, c := range []struct{ method, path, media string }{
		{"PUT", servertest.RulesPath + "/a", servertest.AsJSON},
		{"PATCH", servertest.RulesPath + "/a?fieldManager=me&force=true", apply + "json"},
	} {
		if got := w.Want(http.StatusBadRequest, c.method, c.path, text, c.media); !strings.Contains(got.Text, "line 1, column 2: invalid character 'a'") {
			t.Errorf("%s: %s", c.media, got.Text)
		}
	}
	unknown := strings.Replace(text, "precedence", "precedens", 1)
	if got := w.Want(http.StatusUnprocessableEntity, "PUT", servertest.RulesPath+"/a", unknown, servertest.AsYAML); !strings.Contains(got.Text, "precedens") {
		t.Error(got.Text)
	}
}
