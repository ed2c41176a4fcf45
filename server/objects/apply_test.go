package objects_test

import (
	"github.com/pilot-api/pilot-api/server/servertest"

	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/internal/selfsigned"
	"github.com/pilot-api/pilot-api/store/memory"
)

// wanted returns a part of a rule, with additional lines of its spec.
func wanted(spec ...string) string {
	return "apiVersion: config.istio.io/v1alpha2\nkind: RouteRule\nmetadata: {name: a}\nspec: {" + strings.Join(spec, ", ") + "}\n"
}

const toReviews = "destination: {name: reviews}"

func as(manager string) string { return servertest.RulesPath + "/a?fieldManager=" + manager }

// managers returns the managers of an object, in the format of managedFields.
func managers(o servertest.Object) []string {
	var out []string
	for _, e := range o.Metadata.ManagedFields {
		out = append(out, fmt.Sprintf("%s %s", e.Operation, e.Manager))
	}
	slices.Sort(out)
	return out
}

// TestApply applies an object by several managers.
func TestApply(t *testing.T) {
	w := servertest.Start(t)
	w.Want(http.StatusCreated, "PATCH", as("one")+"&dryRun=All", wanted(toReviews), servertest.ApplyPatch)
	w.Want(http.StatusNotFound, "GET", servertest.RulesPath+"/a", "")
	made := w.Want(http.StatusCreated, "PATCH", as("one"), wanted(toReviews, "precedence: 1"), servertest.ApplyPatch)
	if made.Header.Get("Location") != servertest.RulesPath+"/a" {
		t.Errorf("Location %q", made.Header.Get("Location"))
	}
	again := w.Want(http.StatusOK, "PATCH", as("one"), wanted(toReviews, "precedence: 1"), servertest.ApplyPatch)
	if again.Text != made.Text {
		t.Errorf("the same again: %s, was %s", again.Text, made.Text)
	}

	// A manager that wants the same value becomes an owner too, without a change of
	// the spec.
	shared := w.Want(http.StatusOK, "PATCH", as("two"), wanted("precedence: 1"), servertest.ApplyPatch).Object(t)
	if want := []string{"Apply one", "Apply two"}; !slices.Equal(managers(shared), want) || shared.Metadata.Generation != 1 {
		t.Errorf("managers %v at generation %d", managers(shared), shared.Metadata.Generation)
	}
	st := w.Want(http.StatusConflict, "PATCH", as("two"), wanted("precedence: 2"), servertest.ApplyPatch).Failure(t)
	want := metav1.StatusCause{Type: metav1.CauseTypeFieldManagerConflict, Message: `conflict with "one"`, Field: ".spec.precedence"}
	if st.Reason != metav1.StatusReasonConflict || len(st.Details.Causes) != 1 || st.Details.Causes[0] != want {
		t.Errorf("conflict: %+v", st)
	}
	forced := w.Want(http.StatusOK, "PATCH", as("two")+"&force=true", wanted("precedence: 2"), servertest.ApplyPatch).Object(t)
	if forced.Metadata.Generation != 2 || !strings.Contains(string(forced.Spec), `"precedence":2`) {
		t.Errorf("forced: %+v", forced)
	}

	// A manager that no longer wants a field removes it, unless others want it.
	w.Want(http.StatusOK, "PATCH", as("one"), wanted(toReviews), servertest.ApplyPatch)
	if got := w.Want(http.StatusOK, "PATCH", as("two"), wanted(), servertest.ApplyPatch); strings.Contains(got.Text, `"precedence":`) {
		t.Errorf("left: %s", got.Text)
	}

	// An update belongs to its program, whatever the verb.
	w.Want(http.StatusOK, "PATCH", as("editor"), `{"spec":{"precedence":7}}`, servertest.MergePatch)
	if got := w.Want(http.StatusConflict, "PATCH", as("one"), wanted(toReviews, "precedence: 1"), servertest.ApplyPatch).Failure(t); !strings.Contains(got.Message, `conflict with "editor" using config.istio.io/v1alpha2: .spec.precedence`) {
		t.Errorf("conflict: %s", got.Message)
	}
	got := w.Want(http.StatusOK, "PUT", servertest.RulesPath+"/a", servertest.Rule("a", 50), servertest.AsYAML, "User-Agent: agent/v1.2 (linux)").Object(t)
	if want := []string{"Apply one", "Apply two", "Update agent"}; !slices.Equal(managers(got), want) {
		t.Errorf("managers %v", managers(got))
	}
}

// TestApplyFindsEarlierWriters checks that the object's history identifies writers
// before the first apply.
func TestApplyFindsEarlierWriters(t *testing.T) {
	w := servertest.Start(t)
	w.Want(http.StatusCreated, "POST", servertest.RulesPath+"?fieldManager=creator", servertest.Rule("a", 100), servertest.AsYAML)
	w.Want(http.StatusOK, "PATCH", servertest.RulesPath+"/a", `{"spec":{"precedence":7}}`, servertest.MergePatch, "User-Agent: agent/v1.2")
	plain := w.Want(http.StatusOK, "GET", servertest.RulesPath+"/a", "").Object(t)
	if len(plain.Metadata.ManagedFields) != 0 {
		t.Errorf("owners of what nobody applied: %v", managers(plain))
	}
	st := w.Want(http.StatusConflict, "PATCH", as("me"), wanted("destination: {name: ratings}", "precedence: 8"), servertest.ApplyPatch).Failure(t)
	for _, part := range []string{`conflicts with "agent" using config.istio.io/v1alpha2:`, "- .spec.precedence", `conflicts with "creator" using`, "- .spec.destination.name"} {
		if !strings.Contains(st.Message, part) {
			t.Errorf("no %q in %s", part, st.Message)
		}
	}
	got := w.Want(http.StatusOK, "PATCH", as("me"), wanted("precedence: 7"), servertest.ApplyPatch).Object(t)
	if want := []string{"Apply me", "Update agent", "Update creator"}; !slices.Equal(managers(got), want) || got.Metadata.Generation != 2 {
		t.Errorf("managers %v at generation %d", managers(got), got.Metadata.Generation)
	}
}

// TestApplyRefused checks that a refused apply names the error and writes nothing.
func TestApplyRefused(t *testing.T) {
	w := servertest.Start(t)
	w.Create("a")
	for _, c := range []struct {
		name, path, body string
		code             int
		says             string
	}{
		{"no manager", servertest.RulesPath + "/a", wanted(), 422, "fieldManager"},
		{"a manager that cannot be printed", as("%07"), wanted(), 422, "fieldManager"},
		{"a manager too long", as(strings.Repeat("x", 129)), wanted(), 422, "fieldManager"},
		{"no text", as("me"), "", 400, "empty"},
		{"a list", as("me"), "- 1\n", 400, "must be a map"},
		{"no kind", as("me"), "metadata: {name: a}\n", 422, "kind: must be given"},
		{"another kind", as("me"), "apiVersion: networking.istio.io/v1\nkind: Gateway\n", 400, "disagree on kind"},
		{"another name", as("me"), strings.Replace(wanted(), "name: a", "name: b", 1), 400, "disagree on metadata.name"},
		{"owners", as("me"), strings.Replace(wanted(), "name: a", "name: a, managedFields: [{}]", 1), 422, "metadata.managedFields"},
		{"unknown field", as("me"), wanted("precedens: 1"), 422, "spec.precedens"},
		{"wrong type", as("me"), wanted("precedence: high"), 422, "spec.precedence"},
		{"a stale version", as("me"), strings.Replace(wanted(), "name: a", `name: a, resourceVersion: "1"`, 1), 409, "resourceVersion"},
		{"another life", as("me"), strings.Replace(wanted(), "name: a", `name: a, uid: another`, 1), 409, "uid"},
		{"not whole", strings.Replace(as("me"), "/a?", "/b?", 1), strings.Replace(wanted("precedence: 1"), "name: a", "name: b", 1), 422, "spec.destination"},
		{"a version of nothing", strings.Replace(as("me"), "/a?", "/b?", 1), strings.Replace(wanted(toReviews), "name: a", `name: b, resourceVersion: "1"`, 1), 404, "not found"},
		{"a life that is over", strings.Replace(as("me"), "/a?", "/b?", 1), strings.Replace(wanted(toReviews), "name: a", `name: b, uid: another`, 1), 409, "uid another"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if st := w.Want(c.code, "PATCH", c.path, c.body, servertest.ApplyPatch).Failure(t); !strings.Contains(st.Message, c.says) {
				t.Errorf("does not say %q: %s", c.says, st.Message)
			}
		})
	}
	w.Want(http.StatusBadRequest, "PATCH", as("me")+"&force=true", `{}`, servertest.MergePatch)
	if rev, _ := w.Store.Revision(t.Context()); rev != 2 {
		t.Errorf("written at revision %d", rev)
	}
}

// TestApplyOfAnEntryThatIsNone checks that entries with names need distinct names.
func TestApplyOfAnEntryThatIsNone(t *testing.T) {
	w := servertest.Start(t)
	const (
		balancing = "/apis/networking.istio.io/v1/namespaces/default/destinationrules/a"
		services  = "/apis/networking.istio.io/v1/namespaces/default/serviceentries/a"
	)
	for _, c := range []struct{ path, kind, more, field string }{
		{balancing, "DestinationRule", "spec: {host: a, subsets: [{name: v1}, {name: v1}]}", "spec.subsets"},
		{balancing, "DestinationRule", "spec: {host: a, subsets: [{labels: {version: v1}}, {}]}", "spec.subsets"},
		{services, "ServiceEntry", "spec: {hosts: [a], ports: [{number: 80, protocol: HTTP}]}", "spec.ports"},
	} {
		body := "apiVersion: networking.istio.io/v1\nkind: " + c.kind + "\nmetadata: {name: a}\n" + c.more
		st := w.Want(http.StatusUnprocessableEntity, "PATCH", c.path+"?fieldManager=me", body, servertest.ApplyPatch).Failure(t)
		if st.Details == nil || len(st.Details.Causes) != 1 || st.Details.Causes[0].Field != c.field {
			t.Errorf("%s: %+v", c.more, st)
		}
	}
	twice := strings.Replace(wanted(toReviews), "name: a", "name: a, finalizers: [a.example/x, a.example/x]", 1)
	if st := w.Want(http.StatusUnprocessableEntity, "PATCH", as("me"), twice, servertest.ApplyPatch).Failure(t); !strings.Contains(st.Message, "metadata.finalizers") {
		t.Errorf("%+v", st)
	}
}

// TestOwnersAreSentBack checks that a client which ignores managedFields does not
// lose them, that a client can set them, and that a recreated object has them
// again.
func TestOwnersAreSentBack(t *testing.T) {
	w := servertest.Start(t)
	w.Want(http.StatusCreated, "PATCH", as("one"), wanted(toReviews), servertest.ApplyPatch)
	whole := w.Want(http.StatusOK, "GET", servertest.RulesPath+"/a", "").Text
	if got := w.Want(http.StatusOK, "PUT", servertest.RulesPath+"/a", whole, servertest.AsJSON); got.Text != whole {
		t.Errorf("sent back, it is %s", got.Text)
	}
	w.Want(http.StatusOK, "DELETE", servertest.RulesPath+"/a", "")
	got := w.Want(http.StatusCreated, "POST", servertest.RulesPath, strings.Replace(whole, `"resourceVersion"`, `"selfLink"`, 1), servertest.AsJSON).Object(t)
	if want := []string{"Apply one"}; !slices.Equal(managers(got), want) {
		t.Errorf("managers %v", managers(got))
	}
	renamed := `[{"op":"replace","path":"/metadata/managedFields/0/manager","value":"other"}]`
	got = w.Want(http.StatusOK, "PATCH", servertest.RulesPath+"/a", renamed, servertest.JsonPatch).Object(t)
	if want := []string{"Apply other"}; !slices.Equal(managers(got), want) || got.Metadata.Generation != 1 {
		t.Errorf("managers %v at generation %d", managers(got), got.Metadata.Generation)
	}
	got = w.Want(http.StatusOK, "PATCH", servertest.RulesPath+"/a", `{"metadata":{"managedFields":[{}]}}`, servertest.MergePatch).Object(t)
	if len(managers(got)) != 0 {
		t.Errorf("reset, there are %v", managers(got))
	}
}

// TestApplyInTransaction applies fields of several objects, at one revision or not
// at all.
func TestApplyInTransaction(t *testing.T) {
	w := servertest.Start(t)
	part := func(name, more string, precedence int) string {
		return strings.Replace(servertest.RuleOp("apply", name, precedence), `"verb"`, more+`,"verb"`, 1)
	}
	const one, two = `"fieldManager":"one"`, `"fieldManager":"two"`
	got := w.Want(http.StatusCreated, "POST", servertest.Transactions, servertest.Transaction(part("a", one, 1), part("b", one, 1)), servertest.AsJSON).Results(t)
	for _, r := range got.Results {
		if want := []string{"Apply one"}; !slices.Equal(managers(r.Object), want) || r.Object.Metadata.ResourceVersion != got.Revision {
			t.Errorf("%+v", r)
		}
	}
	elsewhere := strings.Replace(part("a", one, 1), `"name":"a"`, `"name":"a","namespace":"other"`, 1)
	w.Want(http.StatusCreated, "POST", servertest.Transactions, servertest.Transaction(part("a", one, 1), elsewhere), servertest.AsJSON)
	w.Want(http.StatusOK, "GET", strings.Replace(servertest.RulesPath, "default", "other", 1)+"/a", "")
	gone := strings.Replace(part("d", one, 1), `"name":"d"`, `"name":"d","uid":"of-one-gone"`, 1)
	if st := w.Want(http.StatusConflict, "POST", servertest.Transactions, servertest.Transaction(part("a", one, 1), gone), servertest.AsJSON).Failure(t); !strings.HasPrefix(st.Message, "spec.operations[1]: ") {
		t.Errorf("%+v", st)
	}
	st := w.Want(http.StatusConflict, "POST", servertest.Transactions, servertest.Transaction(part("c", two, 1), part("b", two, 2)), servertest.AsJSON).Failure(t)
	if !strings.HasPrefix(st.Message, `spec.operations[1]: Apply failed with 1 conflict: conflict with "one": .spec.precedence`) || len(st.Details.Causes) != 2 || st.Details.Causes[1].Field != "spec.operations[1]" {
		t.Errorf("%+v", st)
	}
	w.Want(http.StatusNotFound, "GET", servertest.RulesPath+"/c", "")
	w.Want(http.StatusCreated, "POST", servertest.Transactions, servertest.Transaction(part("c", two, 1), part("b", two+`,"force":true`, 2)), servertest.AsJSON)
	w.Want(http.StatusBadRequest, "POST", servertest.Transactions, servertest.Transaction(strings.Replace(servertest.RuleOp("create", "d", 1), `"verb"`, one+`,"verb"`, 1)), servertest.AsJSON)
	w.Want(http.StatusUnprocessableEntity, "POST", servertest.Transactions, servertest.Transaction(part("a", `"force":true`, 1)), servertest.AsJSON)
}

// TestApplySecret checks that a key is applied, kept and replaced, and never shown.
func TestApplySecret(t *testing.T) {
	w := servertest.StartReplica(t, memory.New())
	authority := selfsigned.NewAuthority(t, t.TempDir())
	apply := func(code int, manager string, spec map[string]string) servertest.Answer {
		t.Helper()
		text, err := json.Marshal(map[string]any{"apiVersion": "registry.istio.io/v1", "kind": "Secret", "metadata": map[string]any{"name": "a"}, "spec": spec})
		if err != nil {
			t.Fatal(err)
		}
		got := w.Want(code, "PATCH", secretsPath+"/a?fieldManager="+manager, string(text), servertest.ApplyPatch)
		if strings.Contains(got.Text, "PRIVATE KEY") {
			t.Errorf("shows the key: %s", got.Text)
		}
		return got
	}
	certificate, key := authority.PEM(t, "a.example")
	pair := map[string]string{"certificate": certificate, "privateKey": key}
	made := apply(http.StatusCreated, "one", pair)
	if again := apply(http.StatusOK, "one", pair); again.Text != made.Text {
		t.Errorf("the same again: %s, was %s", again.Text, made.Text)
	}
	// The same key is no conflict, another one is.
	apply(http.StatusOK, "two", pair)
	newCertificate, newKey := authority.PEM(t, "b.example")
	next := map[string]string{"certificate": newCertificate, "privateKey": newKey}
	if st := apply(http.StatusConflict, "two", next).Failure(t); len(st.Details.Causes) != 2 {
		t.Errorf("%+v", st)
	}
	// A manager that gives up a key does not take it from the other.
	if got := apply(http.StatusOK, "two", nil).Object(t); !strings.Contains(string(got.Spec), "(kept: sha256:") {
		t.Errorf("%s", got.Spec)
	}
	renewed := apply(http.StatusOK, "one", next).Object(t)
	if renewed.Metadata.Generation != 2 {
		t.Errorf("generation %d", renewed.Metadata.Generation)
	}
	apply(http.StatusUnprocessableEntity, "one", map[string]string{"certificate": newCertificate, "privateKey": key})
	// Applying what was shown keeps the key.
	var shown map[string]string
	if err := json.Unmarshal(renewed.Spec, &shown); err != nil {
		t.Fatal(err)
	}
	if got := apply(http.StatusOK, "one", shown).Object(t); got.Metadata.Generation != 2 {
		t.Errorf("generation %d", got.Metadata.Generation)
	}
}
