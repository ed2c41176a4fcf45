package objects_test

import (
	"github.com/pilot-api/pilot-api/server/servertest"

	"encoding/json"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// TestDryRun performs every write twice, first as a dry run: both answers are
// alike, and only one of them writes.
func TestDryRun(t *testing.T) {
	object := servertest.RulesPath + "/reviews"
	for _, c := range []struct {
		name, method, path, body, media string
		code                            int
	}{
		{"create", "POST", servertest.RulesPath, servertest.Rule("new", 100), servertest.AsYAML, http.StatusCreated},
		{"create what exists", "POST", servertest.RulesPath, servertest.Rule("reviews", 100), servertest.AsYAML, http.StatusConflict},
		{"create with a version", "POST", servertest.RulesPath, servertest.Rule("new", 100, `resourceVersion: "2"`), servertest.AsYAML, http.StatusUnprocessableEntity},
		{"update", "PUT", object, servertest.Rule("reviews", 50), servertest.AsYAML, http.StatusOK},
		{"update of a version", "PUT", object, servertest.Rule("reviews", 50, `resourceVersion: "2"`), servertest.AsYAML, http.StatusOK},
		{"update of a stale version", "PUT", object, servertest.Rule("reviews", 50, `resourceVersion: "999"`), servertest.AsYAML, http.StatusConflict},
		{"update of no version", "PUT", object, servertest.Rule("reviews", 50, `resourceVersion: abc`), servertest.AsYAML, http.StatusUnprocessableEntity},
		{"update of nothing", "PUT", servertest.RulesPath + "/none", servertest.Rule("none", 50), servertest.AsYAML, http.StatusNotFound},
		{"patch", "PATCH", object, `{"spec":{"precedence":7}}`, servertest.MergePatch, http.StatusOK},
		{"patch that changes nothing", "PATCH", object, `{}`, servertest.MergePatch, http.StatusOK},
		{"patch to a bad object", "PATCH", object, `{"spec":{"precedens":7}}`, servertest.MergePatch, http.StatusUnprocessableEntity},
		{"delete", "DELETE", object, "", servertest.AsJSON, http.StatusOK},
		{"delete of another", "DELETE", object, `{"preconditions":{"uid":"another"}}`, servertest.AsJSON, http.StatusConflict},
		{"delete of no version", "DELETE", object, `{"preconditions":{"resourceVersion":"abc"}}`, servertest.AsJSON, http.StatusUnprocessableEntity},
		{"delete of nothing", "DELETE", servertest.RulesPath + "/none", "", servertest.AsJSON, http.StatusNotFound},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := servertest.Start(t)
			created := w.Create("reviews")
			dry := w.Want(c.code, c.method, c.path+"?dryRun=All", c.body, c.media)
			if rev, _ := w.Store.Revision(t.Context()); rev != servertest.MustRevision(t, created) {
				t.Fatalf("a dry run wrote: revision %d after %s", rev, created.Metadata.ResourceVersion)
			}
			wet := w.Want(c.code, c.method, c.path, c.body, c.media)
			if diff := cmp.Diff(tree(wet, t), tree(dry, t), cmpopts.IgnoreMapEntries(givenByWriting)); diff != "" {
				t.Errorf("(-write +dry run):\n%s", diff)
			}
			// Only a write gives a new version; kubectl diff shows both.
			want := created.Metadata.ResourceVersion
			if c.code == http.StatusCreated {
				want = ""
			}
			if got := dry.Object(t).Metadata.ResourceVersion; c.code < 300 && got != want {
				t.Errorf("the dry run answers resourceVersion %q, want %q", got, want)
			}
		})
	}
}

// TestDryRunInBody checks that only DELETE has dryRun in its body.
func TestDryRunInBody(t *testing.T) {
	w := servertest.Start(t)
	w.Create("reviews")
	w.Want(http.StatusOK, "DELETE", servertest.RulesPath+"/reviews", `{"dryRun":["All"]}`, servertest.AsJSON)
	w.Want(http.StatusOK, "GET", servertest.RulesPath+"/reviews", "")
}

// givenByWriting reports whether each write gives the field another value.
func givenByWriting(name string, _ any) bool {
	return name == "resourceVersion" || name == "uid" || name == "creationTimestamp"
}

func tree(a servertest.Answer, t *testing.T) map[string]any {
	t.Helper()
	var tree map[string]any
	if err := json.Unmarshal([]byte(a.Text), &tree); err != nil {
		t.Fatalf("%v in %s", err, a.Text)
	}
	return tree
}
