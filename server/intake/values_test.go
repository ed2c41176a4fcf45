package intake_test

import (
	"github.com/pilot-api/pilot-api/server/servertest"

	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/schema"
)

const servicesPath = "/apis/networking.istio.io/v1/namespaces/default/virtualservices"

// manyParams returns a VirtualService with n conditions of two values each.
func manyParams(n int) string {
	var conditions strings.Builder
	for i := range n {
		fmt.Fprintf(&conditions, `,"p%d":{}`, i)
	}
	return `{"apiVersion":"networking.istio.io/v1","kind":"VirtualService","metadata":{"name":"large","namespace":"default"},"spec":{"hosts":["reviews"],"http":[{` +
		`"match":[{"queryParams":{` + conditions.String()[1:] + `}}],"route":[{"destination":{"host":"reviews"}}]}]}}`
}

// storeUnchecked stores what no request may contain any more.
func storeUnchecked(w *servertest.World, text string) {
	w.Helper()
	o, problems := schema.Decode([]byte(text), schema.Options{Counted: true})
	if o == nil {
		w.Fatal(problems)
	}
	if _, err := w.Store.Create(w.Context(), o); err != nil {
		w.Fatal(err)
	}
}

// TestWhatHasManyValuesCanBeChanged checks that neither the values of the stored
// object nor its managedFields count for a patch.
func TestWhatHasManyValuesCanBeChanged(t *testing.T) {
	outside.Slow(t)
	for name, conditions := range map[string]int{
		"more than there may be":               schema.MaxValues/2 + 1000,
		"as many as there may be, with owners": schema.MaxValues/2 - 250,
	} {
		t.Run(name, func(t *testing.T) {
			w := servertest.Start(t)
			storeUnchecked(w, manyParams(conditions))
			at := servicesPath + "/large"
			w.Want(http.StatusOK, "PATCH", at, `{"metadata":{"finalizers":["example.com/a"]}}`, servertest.MergePatch)
			w.Want(http.StatusOK, "PATCH", at, `[{"op":"remove","path":"/metadata/finalizers"}]`, servertest.JsonPatch)
			w.Want(http.StatusOK, "PATCH", at+"?fieldManager=me&force=true", `{"apiVersion":"networking.istio.io/v1","kind":"VirtualService","metadata":{"name":"large","labels":{`+labels(200)+`}}}`, servertest.ApplyPatch)
			w.Want(http.StatusOK, "PATCH", at, `{"metadata":{"labels":{"team":"red"}}}`, servertest.MergePatch)
			w.Want(http.StatusCreated, "POST", servertest.Transactions, `{"spec":{"operations":[{"verb":"patch","target":{"kind":"VirtualService","namespace":"default","name":"large"},"patch":{"metadata":{"labels":{"team":"blue"}}}}]}}`, servertest.AsJSON)
			w.Want(http.StatusBadRequest, "PATCH", at, `[{"op":"copy","from":"/spec/http/0/match/0/queryParams","path":"/spec/http/0/match/0/headers"}]`, servertest.JsonPatch)
			w.Want(http.StatusBadRequest, "PATCH", at, `[{"op":"copy","from":"/spec/http/0/match/0/queryParams","path":"/metadata/managedFields"}]`, servertest.JsonPatch)
		})
	}
}

func labels(n int) string {
	var all strings.Builder
	for i := range n {
		fmt.Fprintf(&all, `,"l%d":"x"`, i)
	}
	return all.String()[1:]
}
