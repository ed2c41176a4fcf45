package objects_test

import (
	"github.com/pilot-api/pilot-api/server/servertest"

	"net/http"
	"strings"
	"testing"
)

// TestIfMatch checks that a write to an object which no longer has the ETag does
// nothing and says so.
func TestIfMatch(t *testing.T) {
	const applyPath = servertest.RulesPath + "/a?fieldManager=me&force=true"
	applied := ruleIn(servertest.RuleOp("", "a", 7))
	for _, c := range []struct{ name, method, path, body, media string }{
		{"PUT", "PUT", servertest.RulesPath + "/a", servertest.Rule("a", 7), servertest.AsYAML},
		{"merge patch", "PATCH", servertest.RulesPath + "/a", `{"metadata":{"labels":{"c":"d"}}}`, servertest.MergePatch},
		{"JSON patch", "PATCH", servertest.RulesPath + "/a", `[{"op":"add","path":"/spec/precedence","value":7}]`, servertest.JsonPatch},
		{"apply", "PATCH", applyPath, applied, "Content-Type: application/apply-patch+yaml"},
		{"DELETE", "DELETE", servertest.RulesPath + "/a", "", servertest.AsJSON},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := servertest.Start(t)
			w.Create("a")
			old := w.Want(http.StatusOK, "GET", servertest.RulesPath+"/a", "").Header.Get("ETag")
			w.Put("a", 50)
			got := w.Want(http.StatusOK, "GET", servertest.RulesPath+"/a", "", "Accept: application/yaml")
			now, before := got.Header.Get("ETag"), got.Text
			for tag, code := range map[string]int{old: 412, "W/" + now: 412, `"other"`: 412, `""`: 412, "other": 400, now + ", " + old: 400} {
				answer := w.Want(code, c.method, c.path, c.body, c.media, "If-Match: "+tag)
				if st := answer.Failure(t); code == 412 && st.Reason != "PreconditionFailed" {
					t.Errorf("%s: %s", tag, answer.Text)
				}
			}
			if got := w.Want(http.StatusOK, "GET", servertest.RulesPath+"/a", "", "Accept: application/yaml"); got.Text != before {
				t.Errorf("was changed to %s", got.Text)
			}
			w.Want(http.StatusOK, c.method, c.path, c.body, c.media, "If-Match: "+now)
			w.Do("DELETE", servertest.RulesPath+"/a", "")
			missing := http.StatusNotFound
			if c.name == "apply" { // Otherwise it would create it.
				missing = http.StatusPreconditionFailed
			}
			w.Want(missing, c.method, c.path, c.body, c.media, "If-Match: *")
			w.Create("a")
			w.Want(http.StatusOK, c.method, c.path, c.body, c.media, "If-Match: *")
		})
	}
}

// TestIfMatchOfSeveral checks that If-Match is refused for several objects, where
// it would have no effect.
func TestIfMatchOfSeveral(t *testing.T) {
	w := servertest.Start(t)
	w.Create("a")
	for _, c := range []struct{ method, path, body string }{
		{"DELETE", servertest.RulesPath, ""},
		{"POST", servertest.RulesPath, servertest.Rule("b", 1)},
		{"POST", servertest.Transactions, servertest.Transaction(servertest.RuleOp("create", "b", 1))},
		{"POST", servertest.Rollbacks, `{"spec":{"revision":1,"namespace":"default"}}`},
	} {
		if got := w.Want(http.StatusBadRequest, c.method, c.path, c.body, servertest.AsYAML, "If-Match: *"); !strings.Contains(got.Text, "If-Match") {
			t.Errorf("%s %s: %s", c.method, c.path, got.Text)
		}
	}
	wantRules(w, "a")
	w.Want(http.StatusOK, "GET", servertest.RulesPath, "", "If-Match: *")
}

// TestIfNoneMatch checks that a PUT of a new object creates it and replaces
// nothing.
func TestIfNoneMatch(t *testing.T) {
	w := servertest.Start(t)
	const only = "If-None-Match: *"
	path := servertest.RulesPath + "/a"
	w.Want(http.StatusCreated, "PUT", path+"?dryRun=All", servertest.Rule("a", 1), servertest.AsYAML, only)
	wantRules(w)
	if got := w.Want(http.StatusCreated, "PUT", path, servertest.Rule("a", 1), servertest.AsYAML, only); got.Header.Get("Location") != path {
		t.Errorf("Location %q", got.Header.Get("Location"))
	}
	before := w.Want(http.StatusOK, "GET", path, "").Text
	if st := w.Want(http.StatusPreconditionFailed, "PUT", path, servertest.Rule("a", 2), servertest.AsYAML, only).Failure(t); st.Reason != "PreconditionFailed" {
		t.Errorf("%+v", st)
	}
	tag := "If-None-Match: " + w.Want(http.StatusOK, "GET", path, "").Header.Get("ETag")
	for _, c := range []struct {
		method, path, body string
		headers            []string
	}{
		{"PUT", path, servertest.Rule("a", 2), []string{servertest.AsYAML, tag}},
		{"PUT", path, servertest.Rule("a", 2), []string{servertest.AsYAML, only, "If-Match: *"}},
		{"PATCH", path, `{"spec":{"precedence":2}}`, []string{servertest.MergePatch, only}},
		{"DELETE", path, "", []string{only}},
		{"DELETE", servertest.RulesPath, "", []string{only}},
		{"POST", servertest.RulesPath, servertest.Rule("b", 1), []string{servertest.AsYAML, only}},
		{"POST", servertest.Transactions, servertest.Transaction(servertest.RuleOp("create", "b", 1)), []string{servertest.AsYAML, only}},
	} {
		if got := w.Want(http.StatusBadRequest, c.method, c.path, c.body, c.headers...); !strings.Contains(got.Text, "If-None-Match") {
			t.Errorf("%s %s: %s", c.method, c.path, got.Text)
		}
	}
	if now := w.Want(http.StatusOK, "GET", path, "").Text; now != before {
		t.Errorf("was changed to %s", now)
	}
	wantRules(w, "a")
}
