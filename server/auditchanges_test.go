package server_test

import (
	"github.com/pilot-api/pilot-api/server/servertest"

	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/pilot-api/pilot-api/security/audit"
	"github.com/pilot-api/pilot-api/server"
	"github.com/pilot-api/pilot-api/store"
)

// revisions returns the revisions of all objects.
func revisions(w *servertest.World) map[string]string {
	w.Helper()
	list, err := w.Store.List(w.Context(), store.Scope{}, store.ListOptions{})
	if err != nil {
		w.Fatal(err)
	}
	all := map[string]string{}
	for _, o := range list.Items {
		all[o.Key().String()] = o.Meta.ResourceVersion
	}
	return all
}

// TestAuditHasAllChanges writes in all ways. Each event must have exactly the objects whose
// revision is another one than before, with both revisions.
func TestAuditHasAllChanges(t *testing.T) {
	log, events := auditLog(t, audit.Options{File: filepath.Join(t.TempDir(), "audit.log")})
	w := servertest.Start(t, func(o *server.Options) { o.Audit = log })
	a, merge := servertest.RulesPath+"/a", "Content-Type: application/merge-patch+json"
	want, gone := map[string][]string{}, "gone"
	for i, c := range []struct {
		code               int
		method, path, body string
		headers            []string
		changes            int
	}{
		{201, "POST", servertest.RulesPath, servertest.Rule("a", 1), []string{servertest.AsYAML}, 1},
		{409, "POST", servertest.RulesPath, servertest.Rule("a", 1), []string{servertest.AsYAML}, 0},
		{200, "PUT", a, servertest.Rule("a", 2), []string{servertest.AsYAML}, 1},
		{200, "PUT", a, servertest.Rule("a", 2), []string{servertest.AsYAML}, 0},
		{200, "PATCH", a, `{"spec":{"precedence":3}}`, []string{merge}, 1},
		{200, "PATCH", a, `{"spec":{"precedence":3}}`, []string{merge}, 0},
		{201, "POST", servertest.Transactions, servertest.Transaction(servertest.RuleOp("create", "b", 1), servertest.RuleOp("update", "a", 4), servertest.RuleOp("apply", "c", 1)), []string{servertest.AsJSON}, 3},
		{201, "POST", servertest.Transactions, servertest.Transaction(servertest.RuleOp("apply", "b", 1), servertest.RuleOp("apply", "c", 2)), []string{servertest.AsJSON}, 1},
		{200, "PATCH", a, `{"metadata":{"finalizers":["example.com/a"]}}`, []string{merge}, 1},
		{200, "DELETE", a, "", nil, 1},
		{200, "DELETE", a, "", nil, 0},
		{200, "PATCH", a, `{"metadata":{"finalizers":null}}`, []string{merge}, 1},
		{201, "POST", servertest.Rollbacks, `{"apiVersion":"registry.istio.io/v1","kind":"Rollback","spec":{"revision":2,"namespace":"default"}}`, []string{servertest.AsJSON}, 3},
		{200, "PUT", a + "?dryRun=All", servertest.Rule("a", 9), []string{servertest.AsYAML}, 0},
		{200, "DELETE", servertest.RulesPath, "", nil, 1},
	} {
		id, before := fmt.Sprintf("request-%d", i), revisions(w)
		w.Want(c.code, c.method, c.path, c.body, append(c.headers, "X-Request-Id: "+id)...)
		after := revisions(w)
		for key, revision := range before {
			switch now, there := after[key]; {
			case !there:
				want[id] = append(want[id], key+" "+revision+" "+gone)
			case now != revision:
				want[id] = append(want[id], key+" "+revision+" "+now)
			}
		}
		for key, revision := range after {
			if _, there := before[key]; !there {
				want[id] = append(want[id], key+"  "+revision)
			}
		}
		if len(want[id]) != c.changes {
			t.Fatalf("request %d changed %q, want %d", i, want[id], c.changes)
		}
		slices.Sort(want[id])
	}
	for _, e := range events() {
		var got []string
		for _, change := range e.Changes {
			if change.After == "" {
				t.Errorf("%s %s: %s has no revision", e.ID, e.Verb, change.Object)
			}
			if at := " " + change.Before + " " + gone; slices.Contains(want[e.ID], change.Object+at) {
				change.After = gone // The store no longer has the revision of a deletion.
			}
			got = append(got, change.Object+" "+change.Before+" "+change.After)
		}
		slices.Sort(got)
		if len(got) != len(want[e.ID]) {
			t.Errorf("%s %s: %q, want %q", e.ID, e.Verb, got, want[e.ID])
			continue
		}
		for i, one := range want[e.ID] {
			if got[i] != one {
				t.Errorf("%s %s: %q, want %q", e.ID, e.Verb, got[i], one)
			}
		}
		delete(want, e.ID)
	}
	for id, changes := range want {
		t.Errorf("%s: no event of %q", id, changes)
	}
}
