package intake_test

import (
	"github.com/pilot-api/pilot-api/server/servertest"

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
	const object = servertest.RulesPath + "/large"
	w := servertest.Start(t)
	w.Want(http.StatusRequestEntityTooLarge, "POST", servertest.RulesPath, sized(t, schema.MaxNewBytes+1), servertest.AsJSON)
	w.Want(http.StatusCreated, "POST", servertest.RulesPath, sized(t, schema.MaxNewBytes), servertest.AsJSON)
	putBack := func() {
		t.Helper()
		w.Want(http.StatusOK, "PUT", object, w.Want(http.StatusOK, "GET", object, "").Text, servertest.AsJSON)
	}
	putBack()
	w.Want(http.StatusOK, "PATCH", object, `{"metadata":{"labels":{"app":"shop"},"finalizers":["example.com/clean-up"]}}`, servertest.MergePatch)
	putBack()

	w.Want(http.StatusOK, "PUT", object, strings.Replace(sized(t, schema.MaxObjectBytes-len(`"finalizers":["example.com/clean-up"],`)),
		`"metadata":{`, `"metadata":{"finalizers":["example.com/clean-up"],`, 1), servertest.AsJSON)
	putBack()
	w.Want(http.StatusBadRequest, "PATCH", object, `{"metadata":{"labels":{"app":"shop"}}}`, servertest.MergePatch)
	w.Want(http.StatusOK, "DELETE", object, "")
	putBack()
	w.Want(http.StatusOK, "PATCH", object, `{"metadata":{"finalizers":null}}`, servertest.MergePatch)
	w.Want(http.StatusNotFound, "GET", object, "")
}
