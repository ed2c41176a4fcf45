package server_test

import (
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

const applyPatch = "Content-Type: application/apply-patch+yaml"

// wanted returns a part of a rule, with additional lines of its spec.
func wanted(spec ...string) string {
	return "apiVersion: config.istio.io/v1alpha2\nkind: RouteRule\nmetadata: {name: a}\nspec: {" + strings.Join(spec, ", ") + "}\n"
}

const toReviews = "destination: {name: reviews}"

func as(manager string) string { return rulesPath + "/a?fieldManager=" + manager }

// managers returns the managers of an object, in the format of managedFields.
func (o object) managers() []string {
	var out []string
	for _, e := range o.Metadata.ManagedFields {
		out = append(out, fmt.Sprintf("%s %s", e.Operation, e.Manager))
	}
	slices.Sort(out)
	return out
}

// TestApply applies an object by several managers.
func TestApply(t *testing.T) {
	w := start(t)
	w.want(http.StatusCreated, "PATCH", as("one")+"&dryRun=All", wanted(toReviews), applyPatch)
	w.want(http.StatusNotFound, "GET", rulesPath+"/a", "")
	made := w.want(http.StatusCreated, "PATCH", as("one"), wanted(toReviews, "precedence: 1"), applyPatch)
	if made.Header.Get("Location") != rulesPath+"/a" {
		t.Errorf("Location %q", made.Header.Get("Location"))
	}
	again := w.want(http.StatusOK, "PATCH", as("one"), wanted(toReviews, "precedence: 1"), applyPatch)
	if again.text != made.text {
		t.Errorf("the same again: %s, was %s", again.text, made.text)
	}

	// A manager that wants the same value becomes an owner too, without a change of
	// the spec.
	shared := w.want(http.StatusOK, "PATCH", as("two"), wanted("precedence: 1"), applyPatch).object(t)
	if want := []string{"Apply one", "Apply two"}; !slices.Equal(shared.managers(), want) || shared.Metadata.Generation != 1 {
		t.Errorf("managers %v at generation %d", shared.managers(), shared.Metadata.Generation)
	}
	st := w.want(http.StatusConflict, "PATCH", as("two"), wanted("precedence: 2"), applyPatch).status(t)
	want := metav1.StatusCause{Type: metav1.CauseTypeFieldManagerConflict, Message: `conflict with "one"`, Field: ".spec.precedence"}
	if st.Reason != metav1.StatusReasonConflict || len(st.Details.Causes) != 1 || st.Details.Causes[0] != want {
		t.Errorf("conflict: %+v", st)
	}
	forced := w.want(http.StatusOK, "PATCH", as("two")+"&force=true", wanted("precedence: 2"), applyPatch).object(t)
	if forced.Metadata.Generation != 2 || !strings.Contains(string(forced.Spec), `"precedence":2`) {
		t.Errorf("forced: %+v", forced)
	}

	// A manager that no longer wants a field removes it, unless others want it.
	w.want(http.StatusOK, "PATCH", as("one"), wanted(toReviews), applyPatch)
	if got := w.want(http.StatusOK, "PATCH", as("two"), wanted(), applyPatch); strings.Contains(got.text, `"precedence":`) {
		t.Errorf("left: %s", got.text)
	}

	// An update belongs to its program, whatever the verb.
	w.want(http.StatusOK, "PATCH", as("editor"), `{"spec":{"precedence":7}}`, mergePatch)
	if got := w.want(http.StatusConflict, "PATCH", as("one"), wanted(toReviews, "precedence: 1"), applyPatch).status(t); !strings.Contains(got.Message, `conflict with "editor" using config.istio.io/v1alpha2: .spec.precedence`) {
		t.Errorf("conflict: %s", got.Message)
	}
	got := w.want(http.StatusOK, "PUT", rulesPath+"/a", rule("a", 50), asYAML, "User-Agent: agent/v1.2 (linux)").object(t)
	if want := []string{"Apply one", "Apply two", "Update agent"}; !slices.Equal(got.managers(), want) {
		t.Errorf("managers %v", got.managers())
	}
}

// TestApplyFindsEarlierWriters checks that the object's history identifies writers
// before the first apply.
func TestApplyFindsEarlierWriters(t *testing.T) {
	w := start(t)
	w.want(http.StatusCreated, "POST", rulesPath+"?fieldManager=creator", rule("a", 100), asYAML)
	w.want(http.StatusOK, "PATCH", rulesPath+"/a", `{"spec":{"precedence":7}}`, mergePatch, "User-Agent: agent/v1.2")
	plain := w.want(http.StatusOK, "GET", rulesPath+"/a", "").object(t)
	if len(plain.Metadata.ManagedFields) != 0 {
		t.Errorf("owners of what nobody applied: %v", plain.managers())
	}
	st := w.want(http.StatusConflict, "PATCH", as("me"), wanted("destination: {name: ratings}", "precedence: 8"), applyPatch).status(t)
	for _, part := range []string{`conflicts with "agent" using config.istio.io/v1alpha2:`, "- .spec.precedence", `conflicts with "creator" using`, "- .spec.destination.name"} {
		if !strings.Contains(st.Message, part) {
			t.Errorf("no %q in %s", part, st.Message)
		}
	}
	got := w.want(http.StatusOK, "PATCH", as("me"), wanted("precedence: 7"), applyPatch).object(t)
	if want := []string{"Apply me", "Update agent", "Update creator"}; !slices.Equal(got.managers(), want) || got.Metadata.Generation != 2 {
		t.Errorf("managers %v at generation %d", got.managers(), got.Metadata.Generation)
	}
}

// TestApplyRefused checks that a refused apply names the error and writes nothing.
func TestApplyRefused(t *testing.T) {
	w := start(t)
	w.create("a")
	for _, c := range []struct {
		name, path, body string
		code             int
		says             string
	}{
		{"no manager", rulesPath + "/a", wanted(), 422, "fieldManager"},
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
			if st := w.want(c.code, "PATCH", c.path, c.body, applyPatch).status(t); !strings.Contains(st.Message, c.says) {
				t.Errorf("does not say %q: %s", c.says, st.Message)
			}
		})
	}
	w.want(http.StatusBadRequest, "PATCH", as("me")+"&force=true", `{}`, mergePatch)
	if rev, _ := w.store.Revision(t.Context()); rev != 2 {
		t.Errorf("written at revision %d", rev)
	}
}

// TestApplyOfAnEntryThatIsNone checks that entries with names need distinct names.
func TestApplyOfAnEntryThatIsNone(t *testing.T) {
	w := start(t)
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
		st := w.want(http.StatusUnprocessableEntity, "PATCH", c.path+"?fieldManager=me", body, applyPatch).status(t)
		if st.Details == nil || len(st.Details.Causes) != 1 || st.Details.Causes[0].Field != c.field {
			t.Errorf("%s: %+v", c.more, st)
		}
	}
	twice := strings.Replace(wanted(toReviews), "name: a", "name: a, finalizers: [a.example/x, a.example/x]", 1)
	if st := w.want(http.StatusUnprocessableEntity, "PATCH", as("me"), twice, applyPatch).status(t); !strings.Contains(st.Message, "metadata.finalizers") {
		t.Errorf("%+v", st)
	}
}

// TestOwnersAreSentBack checks that a client which ignores managedFields does not
// lose them, that a client can set them, and that a recreated object has them
// again.
func TestOwnersAreSentBack(t *testing.T) {
	w := start(t)
	w.want(http.StatusCreated, "PATCH", as("one"), wanted(toReviews), applyPatch)
	whole := w.want(http.StatusOK, "GET", rulesPath+"/a", "").text
	if got := w.want(http.StatusOK, "PUT", rulesPath+"/a", whole, asJSON); got.text != whole {
		t.Errorf("sent back, it is %s", got.text)
	}
	w.want(http.StatusOK, "DELETE", rulesPath+"/a", "")
	got := w.want(http.StatusCreated, "POST", rulesPath, strings.Replace(whole, `"resourceVersion"`, `"selfLink"`, 1), asJSON).object(t)
	if want := []string{"Apply one"}; !slices.Equal(got.managers(), want) {
		t.Errorf("managers %v", got.managers())
	}
	renamed := `[{"op":"replace","path":"/metadata/managedFields/0/manager","value":"other"}]`
	got = w.want(http.StatusOK, "PATCH", rulesPath+"/a", renamed, jsonPatch).object(t)
	if want := []string{"Apply other"}; !slices.Equal(got.managers(), want) || got.Metadata.Generation != 1 {
		t.Errorf("managers %v at generation %d", got.managers(), got.Metadata.Generation)
	}
	got = w.want(http.StatusOK, "PATCH", rulesPath+"/a", `{"metadata":{"managedFields":[{}]}}`, mergePatch).object(t)
	if len(got.managers()) != 0 {
		t.Errorf("reset, there are %v", got.managers())
	}
}

// TestApplyInTransaction applies fields of several objects, at one revision or not
// at all.
func TestApplyInTransaction(t *testing.T) {
	w := start(t)
	part := func(name, more string, precedence int) string {
		return strings.Replace(ruleOp("apply", name, precedence), `"verb"`, more+`,"verb"`, 1)
	}
	const one, two = `"fieldManager":"one"`, `"fieldManager":"two"`
	got := w.want(http.StatusCreated, "POST", transactions, transaction(part("a", one, 1), part("b", one, 1)), asJSON).results(t)
	for _, r := range got.Results {
		if want := []string{"Apply one"}; !slices.Equal(r.Object.managers(), want) || r.Object.Metadata.ResourceVersion != got.Revision {
			t.Errorf("%+v", r)
		}
	}
	elsewhere := strings.Replace(part("a", one, 1), `"name":"a"`, `"name":"a","namespace":"other"`, 1)
	w.want(http.StatusCreated, "POST", transactions, transaction(part("a", one, 1), elsewhere), asJSON)
	w.want(http.StatusOK, "GET", strings.Replace(rulesPath, "default", "other", 1)+"/a", "")
	gone := strings.Replace(part("d", one, 1), `"name":"d"`, `"name":"d","uid":"of-one-gone"`, 1)
	if st := w.want(http.StatusConflict, "POST", transactions, transaction(part("a", one, 1), gone), asJSON).status(t); !strings.HasPrefix(st.Message, "spec.operations[1]: ") {
		t.Errorf("%+v", st)
	}
	st := w.want(http.StatusConflict, "POST", transactions, transaction(part("c", two, 1), part("b", two, 2)), asJSON).status(t)
	if !strings.HasPrefix(st.Message, `spec.operations[1]: Apply failed with 1 conflict: conflict with "one": .spec.precedence`) || len(st.Details.Causes) != 2 || st.Details.Causes[1].Field != "spec.operations[1]" {
		t.Errorf("%+v", st)
	}
	w.want(http.StatusNotFound, "GET", rulesPath+"/c", "")
	w.want(http.StatusCreated, "POST", transactions, transaction(part("c", two, 1), part("b", two+`,"force":true`, 2)), asJSON)
	w.want(http.StatusBadRequest, "POST", transactions, transaction(strings.Replace(ruleOp("create", "d", 1), `"verb"`, one+`,"verb"`, 1)), asJSON)
	w.want(http.StatusUnprocessableEntity, "POST", transactions, transaction(part("a", `"force":true`, 1)), asJSON)
}

// TestApplySecret checks that a key is applied, kept and replaced, and never shown.
func TestApplySecret(t *testing.T) {
	w := startReplica(t, memory.New())
	authority := selfsigned.NewAuthority(t, t.TempDir())
	apply := func(code int, manager string, spec map[string]string) answer {
		t.Helper()
		text, err := json.Marshal(map[string]any{"apiVersion": "registry.istio.io/v1", "kind": "Secret", "metadata": map[string]any{"name": "a"}, "spec": spec})
		if err != nil {
			t.Fatal(err)
		}
		got := w.want(code, "PATCH", secretsPath+"/a?fieldManager="+manager, string(text), applyPatch)
		if strings.Contains(got.text, "PRIVATE KEY") {
			t.Errorf("shows the key: %s", got.text)
		}
		return got
	}
	certificate, key := authority.PEM(t, "a.example")
	pair := map[string]string{"certificate": certificate, "privateKey": key}
	made := apply(http.StatusCreated, "one", pair)
	if again := apply(http.StatusOK, "one", pair); again.text != made.text {
		t.Errorf("the same again: %s, was %s", again.text, made.text)
	}
	// The same key is no conflict, another one is.
	apply(http.StatusOK, "two", pair)
	newCertificate, newKey := authority.PEM(t, "b.example")
	next := map[string]string{"certificate": newCertificate, "privateKey": newKey}
	if st := apply(http.StatusConflict, "two", next).status(t); len(st.Details.Causes) != 2 {
		t.Errorf("%+v", st)
	}
	// A manager that gives up a key does not take it from the other.
	if got := apply(http.StatusOK, "two", nil).object(t); !strings.Contains(string(got.Spec), "(kept: sha256:") {
		t.Errorf("%s", got.Spec)
	}
	renewed := apply(http.StatusOK, "one", next).object(t)
	if renewed.Metadata.Generation != 2 {
		t.Errorf("generation %d", renewed.Metadata.Generation)
	}
	apply(http.StatusUnprocessableEntity, "one", map[string]string{"certificate": newCertificate, "privateKey": key})
	// Applying what was shown keeps the key.
	var shown map[string]string
	if err := json.Unmarshal(renewed.Spec, &shown); err != nil {
		t.Fatal(err)
	}
	if got := apply(http.StatusOK, "one", shown).object(t); got.Metadata.Generation != 2 {
		t.Errorf("generation %d", got.Metadata.Generation)
	}
}
