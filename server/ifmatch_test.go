package server_test

import (
	"net/http"
	"strings"
	"testing"
)

// TestIfMatch checks that a write to an object which no longer has the ETag does
// nothing and says so.
func TestIfMatch(t *testing.T) {
	const applyPath = rulesPath + "/a?fieldManager=me&force=true"
	applied := ruleIn(ruleOp("", "a", 7))
	for _, c := range []struct{ name, method, path, body, media string }{
		{"PUT", "PUT", rulesPath + "/a", rule("a", 7), asYAML},
		{"merge patch", "PATCH", rulesPath + "/a", `{"metadata":{"labels":{"c":"d"}}}`, mergePatch},
		{"JSON patch", "PATCH", rulesPath + "/a", `[{"op":"add","path":"/spec/precedence","value":7}]`, jsonPatch},
		{"apply", "PATCH", applyPath, applied, "Content-Type: application/apply-patch+yaml"},
		{"DELETE", "DELETE", rulesPath + "/a", "", asJSON},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := start(t)
			w.create("a")
			old := w.want(http.StatusOK, "GET", rulesPath+"/a", "").Header.Get("ETag")
			w.put("a", 50)
			got := w.want(http.StatusOK, "GET", rulesPath+"/a", "", "Accept: application/yaml")
			now, before := got.Header.Get("ETag"), got.text
			for tag, code := range map[string]int{old: 412, "W/" + now: 412, `"other"`: 412, `""`: 412, "other": 400, now + ", " + old: 400} {
				answer := w.want(code, c.method, c.path, c.body, c.media, "If-Match: "+tag)
				if st := answer.status(t); code == 412 && st.Reason != "PreconditionFailed" {
					t.Errorf("%s: %s", tag, answer.text)
				}
			}
			if got := w.want(http.StatusOK, "GET", rulesPath+"/a", "", "Accept: application/yaml"); got.text != before {
				t.Errorf("was changed to %s", got.text)
			}
			w.want(http.StatusOK, c.method, c.path, c.body, c.media, "If-Match: "+now)
			w.do("DELETE", rulesPath+"/a", "")
			missing := http.StatusNotFound
			if c.name == "apply" { // Otherwise it would create it.
				missing = http.StatusPreconditionFailed
			}
			w.want(missing, c.method, c.path, c.body, c.media, "If-Match: *")
			w.create("a")
			w.want(http.StatusOK, c.method, c.path, c.body, c.media, "If-Match: *")
		})
	}
}

// TestIfMatchOfSeveral checks that If-Match is refused for several objects, where
// it would have no effect.
func TestIfMatchOfSeveral(t *testing.T) {
	w := start(t)
	w.create("a")
	for _, c := range []struct{ method, path, body string }{
		{"DELETE", rulesPath, ""},
		{"POST", rulesPath, rule("b", 1)},
		{"POST", transactions, transaction(ruleOp("create", "b", 1))},
		{"POST", rollbacks, `{"spec":{"revision":1,"namespace":"default"}}`},
	} {
		if got := w.want(http.StatusBadRequest, c.method, c.path, c.body, asYAML, "If-Match: *"); !strings.Contains(got.text, "If-Match") {
			t.Errorf("%s %s: %s", c.method, c.path, got.text)
		}
	}
	w.wantRules("a")
	w.want(http.StatusOK, "GET", rulesPath, "", "If-Match: *")
}

// TestIfNoneMatch checks that a PUT of a new object creates it and replaces
// nothing.
func TestIfNoneMatch(t *testing.T) {
	w := start(t)
	const only = "If-None-Match: *"
	path := rulesPath + "/a"
	w.want(http.StatusCreated, "PUT", path+"?dryRun=All", rule("a", 1), asYAML, only)
	w.wantRules()
	if got := w.want(http.StatusCreated, "PUT", path, rule("a", 1), asYAML, only); got.Header.Get("Location") != path {
		t.Errorf("Location %q", got.Header.Get("Location"))
	}
	before := w.want(http.StatusOK, "GET", path, "").text
	if st := w.want(http.StatusPreconditionFailed, "PUT", path, rule("a", 2), asYAML, only).status(t); st.Reason != "PreconditionFailed" {
		t.Errorf("%+v", st)
	}
	tag := "If-None-Match: " + w.want(http.StatusOK, "GET", path, "").Header.Get("ETag")
	for _, c := range []struct {
		method, path, body string
		headers            []string
	}{
		{"PUT", path, rule("a", 2), []string{asYAML, tag}},
		{"PUT", path, rule("a", 2), []string{asYAML, only, "If-Match: *"}},
		{"PATCH", path, `{"spec":{"precedence":2}}`, []string{mergePatch, only}},
		{"DELETE", path, "", []string{only}},
		{"DELETE", rulesPath, "", []string{only}},
		{"POST", rulesPath, rule("b", 1), []string{asYAML, only}},
		{"POST", transactions, transaction(ruleOp("create", "b", 1)), []string{asYAML, only}},
	} {
		if got := w.want(http.StatusBadRequest, c.method, c.path, c.body, c.headers...); !strings.Contains(got.text, "If-None-Match") {
			t.Errorf("%s %s: %s", c.method, c.path, got.text)
		}
	}
	if now := w.want(http.StatusOK, "GET", path, "").text; now != before {
		t.Errorf("was changed to %s", now)
	}
	w.wantRules("a")
}
