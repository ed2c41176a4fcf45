package server_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// TestDryRun performs every write twice, first as a dry run: both answers are
// alike, and only one of them writes.
func TestDryRun(t *testing.T) {
	object := rulesPath + "/reviews"
	for _, c := range []struct {
		name, method, path, body, media string
		code                            int
	}{
		{"create", "POST", rulesPath, rule("new", 100), asYAML, http.StatusCreated},
		{"create what exists", "POST", rulesPath, rule("reviews", 100), asYAML, http.StatusConflict},
		{"create with a version", "POST", rulesPath, rule("new", 100, `resourceVersion: "2"`), asYAML, http.StatusUnprocessableEntity},
		{"update", "PUT", object, rule("reviews", 50), asYAML, http.StatusOK},
		{"update of a version", "PUT", object, rule("reviews", 50, `resourceVersion: "2"`), asYAML, http.StatusOK},
		{"update of a stale version", "PUT", object, rule("reviews", 50, `resourceVersion: "999"`), asYAML, http.StatusConflict},
		{"update of no version", "PUT", object, rule("reviews", 50, `resourceVersion: abc`), asYAML, http.StatusUnprocessableEntity},
		{"update of nothing", "PUT", rulesPath + "/none", rule("none", 50), asYAML, http.StatusNotFound},
		{"patch", "PATCH", object, `{"spec":{"precedence":7}}`, mergePatch, http.StatusOK},
		{"patch that changes nothing", "PATCH", object, `{}`, mergePatch, http.StatusOK},
		{"patch to a bad object", "PATCH", object, `{"spec":{"precedens":7}}`, mergePatch, http.StatusUnprocessableEntity},
		{"delete", "DELETE", object, "", asJSON, http.StatusOK},
		{"delete of another", "DELETE", object, `{"preconditions":{"uid":"another"}}`, asJSON, http.StatusConflict},
		{"delete of no version", "DELETE", object, `{"preconditions":{"resourceVersion":"abc"}}`, asJSON, http.StatusUnprocessableEntity},
		{"delete of nothing", "DELETE", rulesPath + "/none", "", asJSON, http.StatusNotFound},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := start(t)
			created := w.create("reviews")
			dry := w.want(c.code, c.method, c.path+"?dryRun=All", c.body, c.media)
			if rev, _ := w.store.Revision(t.Context()); rev != mustRevision(t, created) {
				t.Fatalf("a dry run wrote: revision %d after %s", rev, created.Metadata.ResourceVersion)
			}
			wet := w.want(c.code, c.method, c.path, c.body, c.media)
			if diff := cmp.Diff(wet.tree(t), dry.tree(t), cmpopts.IgnoreMapEntries(givenByWriting)); diff != "" {
				t.Errorf("(-write +dry run):\n%s", diff)
			}
			// Only a write gives a new version; kubectl diff shows both.
			want := created.Metadata.ResourceVersion
			if c.code == http.StatusCreated {
				want = ""
			}
			if got := dry.object(t).Metadata.ResourceVersion; c.code < 300 && got != want {
				t.Errorf("the dry run answers resourceVersion %q, want %q", got, want)
			}
		})
	}
}

// TestDryRunInBody checks that only DELETE has dryRun in its body.
func TestDryRunInBody(t *testing.T) {
	w := start(t)
	w.create("reviews")
	w.want(http.StatusOK, "DELETE", rulesPath+"/reviews", `{"dryRun":["All"]}`, asJSON)
	w.want(http.StatusOK, "GET", rulesPath+"/reviews", "")
}

// givenByWriting reports whether each write gives the field another value.
func givenByWriting(name string, _ any) bool {
	return name == "resourceVersion" || name == "uid" || name == "creationTimestamp"
}

func (a answer) tree(t *testing.T) map[string]any {
	t.Helper()
	var tree map[string]any
	if err := json.Unmarshal([]byte(a.text), &tree); err != nil {
		t.Fatalf("%v in %s", err, a.text)
	}
	return tree
}
