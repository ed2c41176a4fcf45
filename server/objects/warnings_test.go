package objects_test

import (
	"github.com/pilot-api/pilot-api/server/servertest"

	"fmt"
	"net/http"
	"strings"
	"testing"

	utilnet "k8s.io/apimachinery/pkg/util/net"
)

const entriesPath = "/apis/networking.istio.io/v1/namespaces/default/serviceentries"

// warnings returns the texts of an answer's warnings.
func warnings(a servertest.Answer, t *testing.T) (texts []string) {
	t.Helper()
	found, errs := utilnet.ParseWarningHeaders(a.Header["Warning"])
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	for _, w := range found {
		texts = append(texts, w.Text)
	}
	return texts
}

// reviewsOf returns a service whose instances have one version.
func reviewsOf(version string) string {
	return fmt.Sprintf(`{"apiVersion":"networking.istio.io/v1","kind":"ServiceEntry","metadata":{"name":"reviews"},"spec":{
		"hosts":["reviews.default.svc.cluster.local"],"location":"MESH_INTERNAL","resolution":"STATIC",
		"ports":[{"name":"http","number":9080,"protocol":"HTTP"}],"endpoints":[{"address":"10.0.0.1","labels":{"version":%q}}]}}`, version)
}

// TestWarningsAmongOthers checks that each way to write reports the object's
// problems among the others, as they are after the write.
func TestWarningsAmongOthers(t *testing.T) {
	w := servertest.Followed(t)
	const noHost = "PA0101: RouteRule default/a: spec.destination: no ServiceEntry declares this host"
	const noVersion = "PA0104: RouteRule default/a: spec.route[0].labels: no instance of reviews.default.svc.cluster.local has these labels"
	rule := ruleIn(servertest.RuleOp("", "a", 1))
	for _, step := range []struct {
		method, path, body, media string
		want                      string // the one warning begins so; "" for none
	}{
		{"POST", servertest.RulesPath + "?dryRun=All", rule, servertest.AsJSON, noHost},
		{"POST", servertest.Transactions, servertest.Transaction(servertest.RuleOp("create", "a", 1), `{"verb":"create","object":`+reviewsOf("v1")+`}`), servertest.AsJSON, ""},
		{"PUT", servertest.RulesPath + "/a", rule, servertest.AsJSON, ""},
		{"PATCH", servertest.RulesPath + "/a", `{"spec":{"route":[{"labels":{"version":"v2"}}]}}`, "Content-Type: application/merge-patch+json", noVersion},
		{"PATCH", servertest.RulesPath + "/a?fieldManager=me&force=true", rule, "Content-Type: application/apply-patch+yaml", ""},
		{"PUT", entriesPath + "/reviews?dryRun=All", reviewsOf("v2"), servertest.AsJSON, ""},
		{"PUT", servertest.RulesPath + "/a", rule, servertest.AsJSON, ""},
		{"PUT", entriesPath + "/reviews", reviewsOf("v2"), servertest.AsJSON, ""},
		{"PUT", servertest.RulesPath + "/a", rule, servertest.AsJSON, noVersion},
		{"POST", servertest.Transactions, servertest.Transaction(servertest.RuleOp("update", "a", 1), `{"verb":"delete","target":{"kind":"ServiceEntry","namespace":"default","name":"reviews"}}`), servertest.AsJSON, noHost},
	} {
		got := w.Do(step.method, step.path, step.body, step.media)
		if got.StatusCode/100 != 2 {
			t.Fatalf("%s %s: %s", step.method, step.path, got.Text)
		}
		texts := warnings(got, t)
		if len(texts) > 1 || (len(texts) == 1) != (step.want != "") || len(texts) == 1 && !strings.HasPrefix(texts[0], step.want) {
			t.Errorf("%s %s %s\nwarns of %q, want %q", step.method, step.path, step.body, texts, step.want)
		}
	}
}

// TestWarningsOfFinalizers checks that a marked object exists until its last
// finalizer is removed.
func TestWarningsOfFinalizers(t *testing.T) {
	w := servertest.Followed(t)
	held := func(object string) string {
		return strings.Replace(object, `"metadata":{`, `"metadata":{"finalizers":["example.com/held"],`, 1)
	}
	wantWarnings := func(got servertest.Answer, n int, what string) {
		t.Helper()
		if texts := warnings(got, t); got.StatusCode/100 != 2 || len(texts) != n {
			t.Errorf("%s: %s warns of %q, want %d", what, got.Status, texts, n)
		}
	}
	w.Want(http.StatusCreated, "POST", entriesPath, held(reviewsOf("v1")), servertest.AsJSON)
	marked := w.Do("POST", servertest.Transactions, servertest.Transaction(servertest.RuleOp("create", "a", 1), `{"verb":"delete","target":{"kind":"ServiceEntry","namespace":"default","name":"reviews"}}`), servertest.AsJSON)
	wantWarnings(marked, 0, "a rule of a host that is marked")
	const remove = `{"metadata":{"finalizers":null},"spec":{"endpoints":[{"address":"10.0.0.1","labels":{"version":"v2"}}]}}`
	w.Want(http.StatusOK, "PATCH", servertest.RulesPath+"/a", `{"metadata":{"finalizers":["example.com/held"]}}`, servertest.MergePatch)
	w.Want(http.StatusOK, "DELETE", servertest.RulesPath+"/a", "")
	w.Want(http.StatusOK, "PATCH", entriesPath+"/reviews", remove, servertest.MergePatch)
	wantWarnings(w.Do("PATCH", servertest.RulesPath+"/a", `{"metadata":{"finalizers":null}}`, servertest.MergePatch), 0, "a rule that goes")
	w.Want(http.StatusNotFound, "GET", servertest.RulesPath+"/a", "")
}

// ruleIn returns the object of an operation.
func ruleIn(op string) string {
	_, object, _ := strings.Cut(op, `"object":`)
	return strings.TrimSuffix(object, "}")
}

// TestWarningsAreBounded in number and in bytes.
func TestWarningsAreBounded(t *testing.T) {
	w := servertest.Followed(t)
	var ops []string
	for i := range 50 {
		ops = append(ops, fmt.Sprintf(`{"verb":"create","object":{"apiVersion":"networking.istio.io/v1","kind":"VirtualService","metadata":{"name":"vs-%d"},
			"spec":{"hosts":[%q],"http":[{"route":[{"destination":{"host":%q}}]}]}}}`, i, longHost("a", i), longHost("b", i)))
	}
	got := w.Want(http.StatusCreated, "POST", servertest.Transactions, servertest.Transaction(ops...), servertest.AsJSON)
	texts, size := warnings(got, t), 0
	for _, header := range got.Header["Warning"] {
		size += len(header)
	}
	if len(texts) != 11 || texts[10] != fmt.Sprintf("%d more warnings", 100-10) || size > 12<<10 {
		t.Errorf("%d bytes: %q", size, texts)
	}
}

func longHost(label string, i int) string {
	return strings.Repeat(strings.Repeat(label, 40)+".", 5) + fmt.Sprintf("h%d.example", i)
}

// TestWarnedOnce checks that a problem which the text of an object shows is
// reported only once.
func TestWarnedOnce(t *testing.T) {
	w := servertest.Followed(t)
	w.Want(http.StatusCreated, "POST", entriesPath, reviewsOf("v1"), servertest.AsJSON)
	got := w.Want(http.StatusCreated, "POST", "/apis/networking.istio.io/v1/namespaces/default/destinationrules", `{"apiVersion":"networking.istio.io/v1",
		"kind":"DestinationRule","metadata":{"generateName":"r-"},"spec":{"host":"reviews","trafficPolicy":{"outlierDetection":{"outlierDetectionHttpErrorCodes":[503]}}}}`, servertest.AsJSON)
	seen := map[string]bool{}
	for _, text := range warnings(got, t) {
		_, problem, _ := strings.Cut(text, "spec.")
		if seen[problem] {
			t.Errorf("told twice: %s", text)
		}
		seen[problem] = true
	}
	if len(seen) == 0 {
		t.Error("no warning")
	}
}

// TestWarningsOfWhatV1Loses checks that they are sent while Envoys of the v1 API
// poll, once for all of them, until the object is repaired.
func TestWarningsOfWhatV1Loses(t *testing.T) {
	w := servertest.Followed(t)
	const rulePath = "/apis/networking.istio.io/v1/namespaces/default/destinationrules/reviews"
	balanced := func(by string) string {
		return fmt.Sprintf(`{"apiVersion":"networking.istio.io/v1","kind":"DestinationRule","metadata":{"name":"reviews"},"spec":{"host":"reviews","trafficPolicy":{"loadBalancer":%s}}}`, by)
	}
	const hashed, random = `{"consistentHash":{"useSourceIp":true},"simple":null}`, `{"simple":"RANDOM","consistentHash":null}`
	w.Want(http.StatusCreated, "POST", entriesPath, reviewsOf("v1"), servertest.AsJSON)
	w.Want(http.StatusCreated, "POST", strings.TrimSuffix(rulePath, "/reviews"), balanced(random), servertest.AsJSON)
	w.Want(http.StatusOK, "GET", "/debug/problems", "")
	poll := func(node string) { w.Want(http.StatusOK, "GET", "/v1/clusters/istio-proxy/"+node, "") }
	patch := func(by string) string { return fmt.Sprintf(`{"spec":{"trafficPolicy":{"loadBalancer":%s}}}`, by) }
	const lost = "PA0601: DestinationRule default/reviews: Envoy v1 picks endpoints of out.reviews.default.svc.cluster.local|http"
	step := func(when, method, path, body, media string, want ...string) {
		t.Helper()
		got := w.Do(method, path, body, media)
		texts := warnings(got, t)
		if got.StatusCode/100 != 2 || len(texts) != len(want) || len(want) > 0 && !strings.HasPrefix(texts[0], want[0]) {
			t.Errorf("%s: %s warns of %q, want %q", when, got.Status, texts, want)
		}
	}
	step("nobody polls", "PUT", rulePath, balanced(hashed), servertest.AsJSON)
	poll("sidecar~10.9.0.1~a.default~default.svc.cluster.local")
	step("one polls", "PUT", rulePath, balanced(hashed), servertest.AsJSON, lost)
	poll("sidecar~10.9.0.2~b.books~books.svc.cluster.local")
	poll("router~10.9.0.3~c.default~default.svc.cluster.local")
	step("several poll", "PUT", rulePath+"?dryRun=All", balanced(hashed), servertest.AsJSON, lost)
	step("mended", "PATCH", rulePath, patch(random), servertest.MergePatch)
	step("broken", "PATCH", rulePath, patch(hashed), servertest.MergePatch, lost)
	step("with others", "POST", servertest.Transactions, servertest.Transaction(servertest.RuleOp("create", "a", 1), `{"verb":"update","object":`+balanced(hashed)+`}`), servertest.AsJSON, lost)
	step("mended with others", "POST", servertest.Transactions, servertest.Transaction(servertest.RuleOp("update", "a", 1), `{"verb":"update","object":`+balanced(random)+`}`), servertest.AsJSON)
}
