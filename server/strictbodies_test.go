package server_test

import (
	"net/http"
	"net/url"
	"testing"
)

// TestBodiesAreReadStrictly: a field that is given twice, in other letters, or as null where
// its absence means more, is refused, and nothing is changed.
func TestBodiesAreReadStrictly(t *testing.T) {
	w := start(t)
	w.want(http.StatusCreated, "POST", rulesPath, rule("keep", 1), asYAML)
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
		{"DELETE", rulesPath + "/keep", `{"kind":"DeleteOptions","apiVersion":"v1","DRYRUN":["All"]}`},
		{"DELETE", rulesPath + "?fieldSelector=" + url.QueryEscape(","), ""},
		{"DELETE", rulesPath + "?labelSelector=%20", ""},
	} {
		w.want(http.StatusBadRequest, c.method, c.path, c.body, asJSON)
		w.want(http.StatusOK, "GET", rulesPath+"/keep", "")
	}
}
