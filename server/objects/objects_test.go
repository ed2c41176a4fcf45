package objects_test

import (
	"github.com/pilot-api/pilot-api/server/servertest"

	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// TestLife follows one object from its creation to its end.
func TestLife(t *testing.T) {
	w := servertest.Start(t)
	created := w.Want(http.StatusCreated, "POST", servertest.RulesPath, servertest.Rule("reviews", 100), servertest.AsYAML)
	if got, want := created.Header.Get("Location"), servertest.RulesPath+"/reviews"; got != want {
		t.Errorf("Location: got %q, want %q", got, want)
	}
	first := created.Object(t)
	if first.Metadata.UID == "" || first.Metadata.ResourceVersion == "" || first.Metadata.Generation != 1 || first.Metadata.Namespace != "default" {
		t.Errorf("created metadata: %+v", first.Metadata)
	}
	st := w.Want(http.StatusConflict, "POST", servertest.RulesPath, servertest.Rule("reviews", 100), servertest.AsYAML).Failure(t)
	if st.Reason != metav1.StatusReasonAlreadyExists {
		t.Errorf("second create: reason %q", st.Reason)
	}

	read := w.Want(http.StatusOK, "GET", servertest.RulesPath+"/reviews", "")
	if read.Text != created.Text {
		t.Errorf("GET differs from the answer to POST:\n%s", cmp.Diff(created.Text, read.Text))
	}

	fresh := servertest.Rule("reviews", 50, "resourceVersion: \""+first.Metadata.ResourceVersion+`"`)
	second := w.Want(http.StatusOK, "PUT", servertest.RulesPath+"/reviews", fresh, servertest.AsYAML).Object(t)
	if second.Metadata.Generation != 2 || second.Metadata.UID != first.Metadata.UID || second.Metadata.ResourceVersion == first.Metadata.ResourceVersion {
		t.Errorf("updated metadata: %+v", second.Metadata)
	}
	st = w.Want(http.StatusConflict, "PUT", servertest.RulesPath+"/reviews", fresh, servertest.AsYAML).Failure(t)
	if st.Reason != metav1.StatusReasonConflict || !strings.Contains(st.Message, second.Metadata.ResourceVersion) {
		t.Errorf("stale update: %s: %s, want the current version named", st.Reason, st.Message)
	}

	gone := w.Want(http.StatusOK, "DELETE", servertest.RulesPath+"/reviews", "").Object(t)
	if gone.Metadata.UID != first.Metadata.UID {
		t.Errorf("deleted: %+v", gone.Metadata)
	}
	for _, method := range []string{"GET", "DELETE"} {
		if st := w.Want(http.StatusNotFound, method, servertest.RulesPath+"/reviews", "").Failure(t); st.Details.Name != "reviews" || st.Details.Kind != "routerules" {
			t.Errorf("%s after the end: details %+v", method, st.Details)
		}
	}
	w.Want(http.StatusNotFound, "PUT", servertest.RulesPath+"/reviews", servertest.Rule("reviews", 50), servertest.AsYAML)
}

func TestListScopesAndSelectors(t *testing.T) {
	w := servertest.Start(t)
	w.Create("a", "labels: {team: red}")
	b := w.Create("b", "labels: {team: blue}")
	other := strings.Replace(servertest.RulesPath, "/default/", "/other/", 1)
	w.Want(http.StatusCreated, "POST", other, servertest.Rule("c", 100), servertest.AsYAML)
	old := "?resourceVersionMatch=Exact&resourceVersion=" + b.Metadata.ResourceVersion

	for query, want := range map[string][]string{
		servertest.AllRules:                    {"a", "b", "c"},
		servertest.RulesPath:                   {"a", "b"},
		other:                                  {"c"},
		other + "?limit=500&resourceVersion=0": {"c"},
		servertest.AllRules + old:              {"a", "b"},
		servertest.RulesPath + "?labelSelector=team%3Dred":                 {"a"},
		servertest.AllRules + "?labelSelector=team+notin+(red)":            {"b", "c"},
		servertest.AllRules + "?fieldSelector=metadata.name%3Db":           {"b"},
		servertest.RulesPath + "?fieldSelector=metadata.name!%3Db":         {"a"},
		servertest.AllRules + "?fieldSelector=metadata.namespace%3Dother":  {"c"},
		servertest.RulesPath + "?fieldSelector=metadata.name%3Dnone":       nil,
		strings.Replace(servertest.RulesPath, "/default/", "/nowhere/", 1): nil,
	} {
		var list struct {
			Kind, APIVersion string
			Metadata         metav1.ListMeta
			Items            []servertest.Object
		}
		text := w.Want(http.StatusOK, "GET", query, "").Text
		if err := json.Unmarshal([]byte(text), &list); err != nil {
			t.Fatalf("%s: %v\n%s", query, err, text)
		}
		var got []string
		for _, o := range list.Items {
			got = append(got, o.Metadata.Name)
		}
		if diff := cmp.Diff(want, got); diff != "" || list.Kind != "RouteRuleList" || list.Metadata.ResourceVersion == "" || list.Items == nil {
			t.Errorf("%s: (-want +got)\n%s%s", query, diff, text)
		}
	}
}

// TestProtobufIsRefused checks that every path refuses protobuf and names what it
// accepts, but only if the client accepts nothing else.
func TestProtobufIsRefused(t *testing.T) {
	w := &servertest.World{T: t, URL: servertest.StartWhole(t)}
	w.Create("a")
	const protobuf = "application/vnd.kubernetes.protobuf"
	for _, path := range []string{
		"/api", "/apis", "/apis/config.istio.io/v1alpha2", "/version", "/openapi/v3/apis/config.istio.io/v1alpha2",
		servertest.RulesPath, servertest.RulesPath + "/a", servertest.RulesPath + "/a/status", servertest.RulesPath + "/a/history", servertest.RulesPath + "?watch=true&timeoutSeconds=1",
		"/api/v1/namespaces/default", "/apis/registry.istio.io/v1/proxies", "/debug/problems",
	} {
		for _, accept := range []string{protobuf, protobuf + ";as=Table;v=v1;g=meta.k8s.io", protobuf + ";stream=watch"} {
			st := w.Want(http.StatusNotAcceptable, "GET", path, "", "Accept: "+accept).Failure(t)
			if st.Reason != metav1.StatusReasonNotAcceptable || !strings.Contains(st.Message, "application/json") || !strings.Contains(st.Message, accept) {
				t.Errorf("%s as %s: %+v", path, accept, st)
			}
		}
		if got := w.Want(http.StatusOK, "GET", path, "", "Accept: "+protobuf+",application/json").Header.Get("Content-Type"); got != "application/json" {
			t.Errorf("%s: %s", path, got)
		}
	}
	for method, path := range map[string]string{
		"POST": servertest.RulesPath, "PUT": servertest.RulesPath + "/a", "PATCH": servertest.RulesPath + "/a", "DELETE": servertest.RulesPath + "/a",
	} {
		st := w.Want(http.StatusUnsupportedMediaType, method, path, "k8s\x00", "Content-Type: "+protobuf).Failure(t)
		if st.Reason != metav1.StatusReasonUnsupportedMediaType || !strings.Contains(st.Message, "json") {
			t.Errorf("%s: %+v", method, st)
		}
	}
}

func TestFormats(t *testing.T) {
	w := servertest.Start(t)
	w.Create("reviews")
	asJSONText := w.Want(http.StatusOK, "GET", servertest.RulesPath+"/reviews", "").Text
	for accept, contentType := range map[string]string{
		"":                                  "application/json",
		"*/*":                               "application/json",
		"text/html, */*;q=0.8":              "application/json",
		"application/yaml":                  "application/yaml",
		"application/json;q=0.5, text/yaml": "application/yaml",
		"application/vnd.kubernetes.protobuf, application/json": "application/json",
	} {
		for _, path := range []string{servertest.RulesPath + "/reviews", servertest.RulesPath, "/apis"} {
			got := w.Want(http.StatusOK, "GET", path, "", "Accept: "+accept)
			if got.Header.Get("Content-Type") != contentType {
				t.Errorf("Accept %q: got %s, want %s", accept, got.Header.Get("Content-Type"), contentType)
			}
		}
	}
	asYAMLText := w.Want(http.StatusOK, "GET", servertest.RulesPath+"/reviews", "", "Accept: application/yaml").Text
	back, err := yaml.YAMLToJSON([]byte(asYAMLText))
	if err != nil {
		t.Fatal(err)
	}
	var left, right any
	_ = json.Unmarshal([]byte(asJSONText), &left)
	_ = json.Unmarshal(back, &right)
	if diff := cmp.Diff(left, right); diff != "" {
		t.Errorf("YAML says something else than JSON:\n%s", diff)
	}
	w.Want(http.StatusOK, "PUT", servertest.RulesPath+"/reviews", asJSONText, servertest.AsJSON)
	w.Want(http.StatusOK, "PUT", servertest.RulesPath+"/reviews", asYAMLText, servertest.AsYAML)

	st := w.Want(http.StatusNotAcceptable, "GET", servertest.RulesPath, "", "Accept: image/png").Failure(t)
	if !strings.Contains(st.Message, "application/yaml") {
		t.Errorf("406 does not say what there is: %s", st.Message)
	}
}

func TestTable(t *testing.T) {
	w := servertest.Start(t)
	w.Create("reviews")
	const accept = "Accept: application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
	for _, path := range []string{servertest.RulesPath, servertest.RulesPath + "/reviews", servertest.RulesPath + "?includeObject=Object"} {
		var table metav1.Table
		text := w.Want(http.StatusOK, "GET", path, "", accept).Text
		if err := json.Unmarshal([]byte(text), &table); err != nil {
			t.Fatal(err)
		}
		if len(table.Rows) != 1 || table.Rows[0].Cells[0] != "reviews" || len(table.Rows[0].Cells) != len(table.ColumnDefinitions) {
			t.Errorf("%s: %s", path, text)
		}
		want := "PartialObjectMetadata"
		if strings.Contains(path, "includeObject") {
			want = "RouteRule"
		}
		var o servertest.Object
		if err := json.Unmarshal(table.Rows[0].Object.Raw, &o); err != nil || o.Kind != want || o.Metadata.UID == "" {
			t.Errorf("%s: object of the row: %s", path, table.Rows[0].Object.Raw)
		}
	}
	w.Want(http.StatusNotAcceptable, "GET", servertest.RulesPath, "", "Accept: application/json;as=Table;v=v1beta1;g=meta.k8s.io")
}

func TestGenerateName(t *testing.T) {
	w := servertest.Start(t)
	body := strings.Replace(servertest.Rule("x", 100), "name: x", "generateName: rule-", 1)
	a := w.Want(http.StatusCreated, "POST", servertest.RulesPath, body, servertest.AsYAML)
	b := w.Want(http.StatusCreated, "POST", servertest.RulesPath, body, servertest.AsYAML).Object(t)
	name := a.Object(t).Metadata.Name
	if !strings.HasPrefix(name, "rule-") || name == b.Metadata.Name || !strings.HasSuffix(a.Header.Get("Location"), "/"+name) {
		t.Errorf("generated names %q and %q, Location %q", name, b.Metadata.Name, a.Header.Get("Location"))
	}
}

func TestDeletePreconditions(t *testing.T) {
	w := servertest.Start(t)
	created := w.Create("reviews")
	for _, body := range []string{
		`{"preconditions":{"uid":"another"}}`,
		`{"preconditions":{"resourceVersion":"999"}}`,
	} {
		w.Want(http.StatusConflict, "DELETE", servertest.RulesPath+"/reviews", body, servertest.AsJSON)
	}
	for _, body := range []string{`{"precondition":{}}`, `{"dryRun":["Some"]}`, `[`} {
		w.Want(http.StatusBadRequest, "DELETE", servertest.RulesPath+"/reviews", body, servertest.AsJSON)
	}
	w.Want(http.StatusOK, "DELETE", servertest.RulesPath+"/reviews?propagationPolicy=Background",
		`{"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"uid":"`+string(created.Metadata.UID)+`"}}`, servertest.AsJSON)
}
