package objects_test

import (
	"github.com/pilot-api/pilot-api/server/servertest"

	"encoding/json"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/internal/terminal"
	"github.com/pilot-api/pilot-api/schema"
)

const (
	asMerge = "Content-Type: application/merge-patch+json"
	asPatch = "Content-Type: application/json-patch+json"
	asApply = "Content-Type: application/apply-patch+yaml"
)

// outdated is an object that an older version with fewer rules has stored.
type outdated struct {
	kind, spec string
	owners     []metav1.OwnerReference
	field      string // refused today
	mend       string // a merge patch that removes the error
}

func outdatedObjects() map[string]outdated {
	owners := []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "a", UID: "1"}}
	noOwners := `{"metadata":{"ownerReferences":null}}`
	return map[string]outdated{
		"an owner": {kind: "RouteRule", owners: owners, field: "metadata.ownerReferences", mend: noOwners,
			spec: `{"destination":{"name":"reviews"},"route":[{"labels":{"version":"v1"}}]}`},
		"a service with an owner": {kind: "ServiceEntry", owners: owners, field: "metadata.ownerReferences", mend: noOwners,
			spec: `{"hosts":["a.example.com"],"resolution":"DNS","location":"MESH_EXTERNAL","ports":[{"number":80,"name":"http","protocol":"HTTP"}]}`},
		"a field that there is not": {kind: "RouteRule", field: "spec.colour", mend: `{"spec":{"colour":null}}`,
			spec: `{"colour":"red","destination":{"name":"reviews"},"route":[{"labels":{"version":"v1"}}]}`},
		"a list that is too long": {kind: "VirtualService", field: "spec.http[0].match", mend: `{"spec":{"http":[{"route":[{"destination":{"host":"a.example.com"}}]}]}}`,
			spec: `{"hosts":["a.example.com"],"http":[{"match":[` + strings.Repeat(`{"uri":{"exact":"/"}},`, 5000) + `{}],"route":[{"destination":{"host":"a.example.com"}}]}]}`},
		"a value out of bounds": {kind: "ServiceEntry", field: "spec.ports[0].number", mend: `{"spec":{"ports":[{"number":80,"name":"http","protocol":"HTTP"}]}}`,
			spec: `{"hosts":["a.example.com"],"resolution":"DNS","location":"MESH_EXTERNAL","ports":[{"number":70000,"name":"http","protocol":"HTTP"}]}`},
	}
}

// store stores the object without validation.
func (o outdated) store(w *servertest.World) (path string, stored *schema.Object) {
	w.Helper()
	kind, ok := schema.KindByName(o.kind)
	if !ok {
		w.Fatalf("no kind %s", o.kind)
	}
	obj, err := schema.New(kind, metav1.ObjectMeta{Namespace: "default", Name: "old", OwnerReferences: o.owners}, []byte(o.spec))
	if err != nil {
		w.Fatal(err)
	}
	if schema.Validate(obj).Err() == nil {
		w.Skip("is taken today")
	}
	if stored, err = w.Store.Create(w.Context(), obj); err != nil {
		w.Fatal(err)
	}
	return "/apis/" + kind.Group + "/" + kind.Version + "/namespaces/default/" + kind.Plural + "/old", stored
}

// TestObjectsOfOlderVersions checks that an object which an older version stored
// and this one would refuse is served, with a problem that names the field, and can
// be changed, repaired and deleted.
func TestObjectsOfOlderVersions(t *testing.T) {
	outside.Slow(t)
	for name, old := range outdatedObjects() {
		t.Run(name, func(t *testing.T) {
			w := servertest.Followed(t)
			path, stored := old.store(w)
			w.Want(http.StatusOK, "GET", path, "")
			if text := w.Want(http.StatusOK, "GET", "/debug/problems", "").Text; !strings.Contains(text, old.field) {
				t.Errorf("no problem names %s: %s", old.field, text)
			}
			if text := w.Want(http.StatusOK, "GET", path+"?freshStatus=true", "").Text; !strings.Contains(text, `"type":"Accepted","status":"False"`) {
				t.Errorf("it is accepted: %s", text[strings.Index(text, `"status"`):])
			}
			says := func(what string, a servertest.Answer) {
				t.Helper()
				if warnings := strings.Join(a.Header.Values("Warning"), "\n"); !strings.Contains(warnings, old.field) {
					t.Errorf("%s: no warning of %s: %s", what, old.field, warnings)
				}
			}
			says("merge patch", w.Want(http.StatusOK, "PATCH", path, `{"metadata":{"labels":{"a":"b"}}}`, asMerge))
			says("JSON patch", w.Want(http.StatusOK, "PATCH", path, `[{"op":"add","path":"/metadata/labels/c","value":"d"}]`, asPatch))
			says("dry run", w.Want(http.StatusOK, "PATCH", path+"?dryRun=All", `{"metadata":{"labels":{"x":"y"}}}`, asMerge))
			whole := strings.Replace(string(stored.JSON()), `"name":"old"`, `"name":"old","labels":{"e":"f"}`, 1)
			whole = strings.Replace(whole, `"resourceVersion":"`+stored.Meta.ResourceVersion+`",`, "", 1)
			says("update", w.Want(http.StatusOK, "PUT", path, whole, servertest.AsJSON))
			says("update in a transaction", w.Want(http.StatusCreated, "POST", "/apis/registry.istio.io/v1/transactions",
				`{"spec":{"operations":[{"verb":"apply","object":`+strings.Replace(whole, `"f"`, `"g"`, 1)+`}]}}`, servertest.AsJSON))
			says("patch in a transaction", w.Want(http.StatusCreated, "POST", "/apis/registry.istio.io/v1/transactions",
				`{"spec":{"operations":[{"verb":"patch","target":{"kind":"`+old.kind+`","namespace":"default","name":"old"},"patch":{"metadata":{"labels":{"h":"i"}}}}]}}`, servertest.AsJSON))
			part := `{"apiVersion":"` + stored.Kind.APIVersion() + `","kind":"` + old.kind + `","metadata":{"name":"old","namespace":"default","labels":{"j":"k"}}}`
			if name == "a field that there is not" { // nobody can own it
				a := w.Want(http.StatusUnprocessableEntity, "PATCH", path+"?fieldManager=me", part, asApply)
				if !strings.Contains(a.Text, old.field) {
					t.Errorf("server-side apply: %s", a.Text)
				}
			} else {
				says("server-side apply", w.Want(http.StatusOK, "PATCH", path+"?fieldManager=me", part, asApply))
			}

			if got := w.Want(http.StatusOK, "GET", path, "").Object(t); string(got.Spec) != string(stored.SpecJSON()) || len(got.Metadata.OwnerReferences) != len(old.owners) {
				t.Errorf("the rest of it has changed: %.500s", got.Spec)
			}
			w.Want(http.StatusUnprocessableEntity, "PATCH", path, `{"spec":{"another":1}}`, asMerge)
			w.Want(http.StatusUnprocessableEntity, "PATCH", path, `{"metadata":{"finalizers":["no name"]}}`, asMerge)
			w.Want(http.StatusUnprocessableEntity, "POST", strings.TrimSuffix(path, "/old"), strings.Replace(whole, `"name":"old"`, `"name":"new"`, 1), servertest.AsJSON)

			w.Want(http.StatusOK, "PATCH", path, old.mend, asMerge)
			if text := w.Want(http.StatusOK, "GET", "/debug/problems", "").Text; strings.Contains(text, "no new object may have it") {
				t.Errorf("it was mended: %s", text)
			}
			w.Want(http.StatusOK, "DELETE", path, "")
		})
	}
}

// TestFinalizersOfOlderObjects checks that an object which can no longer be created
// can still be deleted, with its finalizers.
func TestFinalizersOfOlderObjects(t *testing.T) {
	w := servertest.Followed(t)
	path, _ := outdatedObjects()["an owner"].store(w)
	w.Want(http.StatusOK, "PATCH", path, `{"metadata":{"finalizers":["example.com/clean-up"]}}`, asMerge)
	w.Want(http.StatusOK, "DELETE", path, "")
	w.Want(http.StatusOK, "PATCH", path, `{"metadata":{"finalizers":null}}`, asMerge)
	w.Want(http.StatusNotFound, "GET", path, "")
}

// TestTableCellsSteerNoTerminal checks the cells of a table, which kubectl prints
// as they are: a stored object may be older than the check of its fields.
func TestTableCellsSteerNoTerminal(t *testing.T) {
	w := servertest.Followed(t)
	outdated{kind: "RouteRule", spec: `{"destination":{"name":"a\u001b[2J\u009b31m\u202e\nb"},"route":[{"labels":{"version":"v1\u0085"}}]}`}.store(w)
	var table metav1.Table
	text := w.Want(http.StatusOK, "GET", servertest.RulesPath, "", servertest.AsTable).Text
	if err := json.Unmarshal([]byte(text), &table); err != nil {
		t.Fatal(err)
	}
	if len(table.Rows) != 1 || table.Rows[0].Cells[1] != `a\x1b[2J\u009b31m\u202e\nb` {
		t.Errorf("the table is %s", text)
	}
	for _, cell := range table.Rows[0].Cells {
		if text, ok := cell.(string); ok && strings.ContainsFunc(text, terminal.Unsafe) {
			t.Errorf("the cell %q steers a terminal", text)
		}
	}
}
