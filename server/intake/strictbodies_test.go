package intake_test

import (
	"github.com/pilot-api/pilot-api/server/servertest"

	"net/http"
	"net/url"
	"testing"
)

// TestBodiesAreReadStrictly: a field that is given twice, in other letters, or as null where
// its absence means more, is refused, and nothing is changed.
func TestBodiesAreReadStrictly(t *testing.T) {
	w := servertest.Start(t)
	w.Want(http.StatusCreated, "POST", servertest.RulesPath, servertest.Rule("keep", 1), servertest.AsYAML)
	const transactions, rollbacks = "/apis/registry.istio.io/v1/transactions", "/apis/registry.istio.io/v1/rollbacks"
	const gone = `{"verb":"delete","target":{"kind":"RouteRule","namespace":"default","name":"keep"}`
	for _, c := range []struct{ method, path, body string }{
		{"POST", transactions, `{"spec":{"operations":[{"verb":"delete","target":{"kind":"RouteRule","namespace":"default","name":"other","Name":"keep"}}]}}`},
		{"POST", transactions, `{"spec":{"operations":[` + gone + `}],"operations":[` + gone + `}]}}`},
		{"POST", transactions, `{"spec":{"operations":[` + gone + `}],"operations":[{}]}}`},
		{"POST", transactions, `{"spec":{"operations":[` + gone + `,"verb":"delete"}]}}`},
		{"POST", transactions, `{"spec":{"operations":[` + gone + `,"preconditions":{"resourceVersion":"99"},"PRECONDITIONS":null}]}}`},
		{"POST", rollbacks, `{"spec":{"revision":1,"kind":"RouteRule","namespace":"default","name":null}}`},
		{"POST", rollbacks, `{"spec":{"revision":1,"kind":null,"namespace":"default"}}`},
		{"POST", rollbacks, `{"spec":{"revision":1,"namespace":"default","Kind":"RouteRule"}}`},
		{"DELETE", servertest.RulesPath + "/keep", `{"kind":"DeleteOptions","apiVersion":"v1","DRYRUN":["All"]}`},
		{"DELETE", servertest.RulesPath + "?fieldSelector=" + url.QueryEscape(","), ""},
		{"DELETE", servertest.RulesPath + "?labelSelector=%20", ""},
	} {
		w.Want(http.StatusBadRequest, c.method, c.path, c.body, servertest.AsJSON)
		w.Want(http.StatusOK, "GET", servertest.RulesPath+"/keep", "")
	}
}
