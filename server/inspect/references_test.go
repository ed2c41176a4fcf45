package inspect_test

import (
	"github.com/pilot-api/pilot-api/server/servertest"

	"encoding/json"
	"net/http"
	"testing"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/internal/simulated"
)

// TestReferencesOfWhatWasJustWritten checks that a client that writes an object and
// then asks sees it.
func TestReferencesOfWhatWasJustWritten(t *testing.T) {
	w := servertest.Followed(t)
	w.Want(http.StatusCreated, "POST", "/apis/networking.istio.io/v1/namespaces/default/serviceentries", simulated.Reviews, servertest.AsYAML)
	w.Want(http.StatusCreated, "POST", "/apis/networking.istio.io/v1/namespaces/default/destinationrules",
		"apiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {name: reviews}\nspec: {host: reviews}\n", servertest.AsYAML)
	const path = "/apis/registry.istio.io/v1/references"
	var found struct {
		Revision int64
		diag.References
	}
	answer := w.Want(http.StatusOK, "GET", path+"?object=DestinationRule/default/reviews", "")
	if err := json.Unmarshal([]byte(answer.Text), &found); err != nil {
		t.Fatal(err)
	}
	rule, entry := diag.Ref{Kind: "DestinationRule", Namespace: "default", Name: "reviews"}, diag.Ref{Kind: "ServiceEntry", Namespace: "default", Name: "reviews"}
	want := diag.Reference{From: rule, Field: "spec.host", Names: "host reviews.default.svc.cluster.local", To: entry}
	if len(found.RefersTo) != 1 || found.RefersTo[0] != want || found.ReferredBy == nil || found.Revision == 0 {
		t.Errorf("got %+v", found)
	}
	for _, query := range []string{"", "?object=reviews", "?object=a/b/c&object=d/e/f", "?objects=a/b/c", "?object=Nothing/default/reviews", "?object=RouteRule/b/c&resourceVersion=x"} {
		w.Want(http.StatusBadRequest, "GET", path+query, "")
	}
	w.Want(http.StatusOK, "GET", path+"?object=RouteRule/default/nothing&resourceVersion=0", "")
}
