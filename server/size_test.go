package server_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/pilot-api/pilot-api/schema"
)

// sized returns a RouteRule in JSON of that many bytes.
func sized(t *testing.T, bytes int) string {
	t.Helper()
	const frame = `{"apiVersion":"config.istio.io/v1alpha2","kind":"RouteRule","metadata":{"name":"large","namespace":"default"},` +
		`"spec":{"destination":{"name":"reviews"},"appendHeaders":{"x-large":"%s"}}}`
	return fmt.Sprintf(frame, strings.Repeat("x", bytes-len(frame)+len("%s")))
}

// TestLargeObjectsStayUsable checks that an accepted object can be written back as
// it was answered, labelled, and deleted with finalizers.
func TestLargeObjectsStayUsable(t *testing.T) {
	const object = rulesPath + "/large"
	w := start(t)
	w.want(http.StatusRequestEntityTooLarge, "POST", rulesPath, sized(t, schema.MaxNewBytes+1), asJSON)
	w.want(http.StatusCreated, "POST", rulesPath, sized(t, schema.MaxNewBytes), asJSON)
	putBack := func() {
		t.Helper()
		w.want(http.StatusOK, "PUT", object, w.want(http.StatusOK, "GET", object, "").text, asJSON)
	}
	putBack()
	w.want(http.StatusOK, "PATCH", object, `{"metadata":{"labels":{"app":"shop"},"finalizers":["example.com/clean-up"]}}`, mergePatch)
	putBack()

	w.want(http.StatusOK, "PUT", object, strings.Replace(sized(t, schema.MaxObjectBytes-len(`"finalizers":["example.com/clean-up"],`)),
		`"metadata":{`, `"metadata":{"finalizers":["example.com/clean-up"],`, 1), asJSON)
	putBack()
	w.want(http.StatusBadRequest, "PATCH", object, `{"metadata":{"labels":{"app":"shop"}}}`, mergePatch)
	w.want(http.StatusOK, "DELETE", object, "")
	putBack()
	w.want(http.StatusOK, "PATCH", object, `{"metadata":{"finalizers":null}}`, mergePatch)
	w.want(http.StatusNotFound, "GET", object, "")
}
