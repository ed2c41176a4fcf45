package server_test

import (
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
	w := start(t)
	created := w.want(http.StatusCreated, "POST", rulesPath, rule("reviews", 100), asYAML)
	if got, want := created.Header.Get("Location"), rulesPath+"/reviews"; got != want {
		t.Errorf("Location: got %q, want %q", got, want)
	}
	first := created.object(t)
	if first.Metadata.UID == "" || first.Metadata.ResourceVersion == "" || first.Metadata.Generation != 1 || first.Metadata.Namespace != "default" {
		t.Errorf("created metadata: %+v", first.Metadata)
	}
	st := w.want(http.StatusConflict, "POST", rulesPath, rule("reviews", 100), asYAML).status(t)
	if st.Reason != metav1.StatusReasonAlreadyExists {
		t.Errorf("second create: reason %q", st.Reason)
	}

	read := w.want(http.StatusOK, "GET", rulesPath+"/reviews", "")
	if read.text != created.text {
		t.Errorf("GET differs from the answer to POST:\n%s", cmp.Diff(created.text, read.text))
	}

	fresh := rule("reviews", 50, "resourceVersion: \""+first.Metadata.ResourceVersion+`"`)
	second := w.want(http.StatusOK, "PUT", rulesPath+"/reviews", fresh, asYAML).object(t)
	if second.Metadata.Generation != 2 || second.Metadata.UID != first.Metadata.UID || second.Metadata.ResourceVersion == first.Metadata.ResourceVersion {
		t.Errorf("updated metadata: %+v", second.Metadata)
	}
	st = w.want(http.StatusConflict, "PUT", rulesPath+"/reviews", fresh, asYAML).status(t)
	if st.Reason != metav1.StatusReasonConflict || !strings.Contains(st.Message, second.Metadata.ResourceVersion) {
		t.Errorf("stale update: %s: %s, want the current version named", st.Reason, st.Message)
	}

	gone := w.want(http.StatusOK, "DELETE", rulesPath+"/reviews", "").object(t)
	if gone.Metadata.UID != first.Metadata.UID {
		t.Errorf("deleted: %+v", gone.Metadata)
	}
	for _, method := range []string{"GET", "DELETE"} {
		if st := w.want(http.StatusNotFound, method, rulesPath+"/reviews", "").status(t); st.Details.Name != "reviews" || st.Details.Kind != "routerules" {
			t.Errorf("%s after the end: details %+v", method, st.Details)
		}
	}
	w.want(http.StatusNotFound, "PUT", rulesPath+"/reviews", rule("reviews", 50), asYAML)
}

func TestListScopesAndSelectors(t *testing.T) {
	w := start(t)
	w.create("a", "labels: {team: red}")
	b := w.create("b", "labels: {team: blue}")
	other := strings.Replace(rulesPath, "/default/", "/other/", 1)
	w.want(http.StatusCreated, "POST", other, rule("c", 100), asYAML)
	old := "?resourceVersionMatch=Exact&resourceVersion=" + b.Metadata.ResourceVersion

	for query, want := range map[string][]string{
		allRules:                                {"a", "b", "c"},
		rulesPath:                               {"a", "b"},
		other:                                   {"c"},
		other + "?limit=500&resourceVersion=0":  {"c"},
		allRules + old:                          {"a", "b"},
		rulesPath + "?labelSelector=team%3Dred": {"a"},
		allRules + "?labelSelector=team+notin+(red)":            {"b", "c"},
		allRules + "?fieldSelector=metadata.name%3Db":           {"b"},
		rulesPath + "?fieldSelector=metadata.name!%3Db":         {"a"},
		allRules + "?fieldSelector=metadata.namespace%3Dother":  {"c"},
		rulesPath + "?fieldSelector=metadata.name%3Dnone":       nil,
		strings.Replace(rulesPath, "/default/", "/nowhere/", 1): nil,
	} {
		var list struct {
			Kind, APIVersion string
			Metadata         metav1.ListMeta
			Items            []object
		}
		text := w.want(http.StatusOK, "GET", query, "").text
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
	w := &world{T: t, url: startWhole(t)}
	w.create("a")
	const protobuf = "application/vnd.kubernetes.protobuf"
	for _, path := range []string{
		"/api", "/apis", "/apis/config.istio.io/v1alpha2", "/version", "/openapi/v3/apis/config.istio.io/v1alpha2",
		rulesPath, rulesPath + "/a", rulesPath + "/a/status", rulesPath + "/a/history", rulesPath + "?watch=true&timeoutSeconds=1",
		"/api/v1/namespaces/default", "/apis/registry.istio.io/v1/proxies", "/debug/problems",
	} {
		for _, accept := range []string{protobuf, protobuf + ";as=Table;v=v1;g=meta.k8s.io", protobuf + ";stream=watch"} {
			st := w.want(http.StatusNotAcceptable, "GET", path, "", "Accept: "+accept).status(t)
			if st.Reason != metav1.StatusReasonNotAcceptable || !strings.Contains(st.Message, "application/json") || !strings.Contains(st.Message, accept) {
				t.Errorf("%s as %s: %+v", path, accept, st)
			}
		}
		if got := w.want(http.StatusOK, "GET", path, "", "Accept: "+protobuf+",application/json").Header.Get("Content-Type"); got != "application/json" {
			t.Errorf("%s: %s", path, got)
		}
	}
	for method, path := range map[string]string{
		"POST": rulesPath, "PUT": rulesPath + "/a", "PATCH": rulesPath + "/a", "DELETE": rulesPath + "/a",
	} {
		st := w.want(http.StatusUnsupportedMediaType, method, path, "k8s\x00", "Content-Type: "+protobuf).status(t)
		if st.Reason != metav1.StatusReasonUnsupportedMediaType || !strings.Contains(st.Message, "json") {
			t.Errorf("%s: %+v", method, st)
		}
	}
}

func TestFormats(t *testing.T) {
	w := start(t)
	w.create("reviews")
	asJSONText := w.want(http.StatusOK, "GET", rulesPath+"/reviews", "").text
	for accept, contentType := range map[string]string{
		"":                                  "application/json",
		"*/*":                               "application/json",
		"text/html, */*;q=0.8":              "application/json",
		"application/yaml":                  "application/yaml",
		"application/json;q=0.5, text/yaml": "application/yaml",
		"application/vnd.kubernetes.protobuf, application/json": "application/json",
	} {
		for _, path := range []string{rulesPath + "/reviews", rulesPath, "/apis"} {
			got := w.want(http.StatusOK, "GET", path, "", "Accept: "+accept)
			if got.Header.Get("Content-Type") != contentType {
				t.Errorf("Accept %q: got %s, want %s", accept, got.Header.Get("Content-Type"), contentType)
			}
		}
	}
	asYAMLText := w.want(http.StatusOK, "GET", rulesPath+"/reviews", "", "Accept: application/yaml").text
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
	w.want(http.StatusOK, "PUT", rulesPath+"/reviews", asJSONText, asJSON)
	w.want(http.StatusOK, "PUT", rulesPath+"/reviews", asYAMLText, asYAML)

	st := w.want(http.StatusNotAcceptable, "GET", rulesPath, "", "Accept: image/png").status(t)
	if !strings.Contains(st.Message, "application/yaml") {
		t.Errorf("406 does not say what there is: %s", st.Message)
	}
}

func TestTable(t *testing.T) {
	w := start(t)
	w.create("reviews")
	const accept = "Accept: application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
	for _, path := range []string{rulesPath, rulesPath + "/reviews", rulesPath + "?includeObject=Object"} {
		var table metav1.Table
		text := w.want(http.StatusOK, "GET", path, "", accept).text
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
		var o object
		if err := json.Unmarshal(table.Rows[0].Object.Raw, &o); err != nil || o.Kind != want || o.Metadata.UID == "" {
			t.Errorf("%s: object of the row: %s", path, table.Rows[0].Object.Raw)
		}
	}
	w.want(http.StatusNotAcceptable, "GET", rulesPath, "", "Accept: application/json;as=Table;v=v1beta1;g=meta.k8s.io")
}

func TestGenerateName(t *testing.T) {
	w := start(t)
	body := strings.Replace(rule("x", 100), "name: x", "generateName: rule-", 1)
	a := w.want(http.StatusCreated, "POST", rulesPath, body, asYAML)
	b := w.want(http.StatusCreated, "POST", rulesPath, body, asYAML).object(t)
	name := a.object(t).Metadata.Name
	if !strings.HasPrefix(name, "rule-") || name == b.Metadata.Name || !strings.HasSuffix(a.Header.Get("Location"), "/"+name) {
		t.Errorf("generated names %q and %q, Location %q", name, b.Metadata.Name, a.Header.Get("Location"))
	}
}

func TestDeletePreconditions(t *testing.T) {
	w := start(t)
	created := w.create("reviews")
	for _, body := range []string{
		`{"preconditions":{"uid":"another"}}`,
		`{"preconditions":{"resourceVersion":"999"}}`,
	} {
		w.want(http.StatusConflict, "DELETE", rulesPath+"/reviews", body, asJSON)
	}
	for _, body := range []string{`{"precondition":{}}`, `{"dryRun":["Some"]}`, `[`} {
		w.want(http.StatusBadRequest, "DELETE", rulesPath+"/reviews", body, asJSON)
	}
	w.want(http.StatusOK, "DELETE", rulesPath+"/reviews?propagationPolicy=Background",
		`{"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"uid":"`+string(created.Metadata.UID)+`"}}`, asJSON)
}
