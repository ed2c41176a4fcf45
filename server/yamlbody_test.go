package server_test

import (
	"net/http"
	"strings"
	"testing"
)

// TestYAMLInBraces checks that YAML which begins like JSON is YAML, if the
// Content-Type says so.
func TestYAMLInBraces(t *testing.T) {
	w := start(t)
	const text = `{apiVersion: config.istio.io/v1alpha2, kind: RouteRule, metadata: {name: a}, spec: {destination: {name: reviews}, precedence: 3}}`
	const apply = "Content-Type: application/apply-patch+"
	w.want(http.StatusCreated, "POST", rulesPath, text, asYAML)
	w.want(http.StatusOK, "PATCH", rulesPath+"/a?fieldManager=me&force=true", text, apply+"yaml")
	for _, c := range []struct{ method, path, media string }{
		{"PUT", rulesPath + "/a", asJSON},
		{"PATCH", rulesPath + "/a?fieldManager=me&force=true", apply + "json"},
	} {
		if got := w.want(http.StatusBadRequest, c.method, c.path, text, c.media); !strings.Contains(got.text, "line 1, column 2: invalid character 'a'") {
			t.Errorf("%s: %s", c.media, got.text)
		}
	}
	unknown := strings.Replace(text, "precedence", "precedens", 1)
	if got := w.want(http.StatusUnprocessableEntity, "PUT", rulesPath+"/a", unknown, asYAML); !strings.Contains(got.text, "precedens") {
		t.Error(got.text)
	}
}
