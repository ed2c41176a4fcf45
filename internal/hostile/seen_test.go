package hostile

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/schema"
)

// TestWithoutBudgets: the judge sees that a server takes too much where no budget holds.
func TestWithoutBudgets(t *testing.T) {
	outside.Slow(t)
	settings := filepath.Join(t.TempDir(), "mesh.yaml")
	if err := os.WriteFile(settings, []byte("budget: {object: 100000000, mesh: 100000000}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	d := newDraw(1, 0, budgetOf)
	for range 4 {
		o := d.add("ServiceEntry", namespaces[0], d.entrySpec(200, 200, 0, 400))
		delete(o.spec, "exportTo")
	}
	for _, flags := range [][]string{nil, {"--mesh-config", settings}} {
		l := newLife(1, 1)
		l.given, l.stored, l.flags = d, true, flags
		out := l.run(t)
		if flags == nil && len(out) > 0 {
			t.Errorf("with budgets: %v", out)
		}
		if flags != nil && !strings.Contains(out.String(), "killed") {
			t.Errorf("without budgets, of %d MiB at most: %v", l.peak>>20, out)
		}
	}
}

// TestJudge: each thing that may be wrong with a combination is seen, and nothing else is.
func TestJudge(t *testing.T) {
	entry := object{kind: "ServiceEntry", namespace: namespaces[0], name: "a", spec: spec{
		"hosts": items(100, func(i int) string { return fmt.Sprint(i) }), "ports": portList(100, 1, "HTTP"),
	}}
	rule := object{kind: "VirtualService", namespace: namespaces[0], name: "b", probe: &probe{domain: "b.example"}}
	counted := object{kind: "ServiceEntry", namespace: namespaces[0], name: "c", probe: &probe{cluster: "c|p-0", endpoints: 2}}
	over := func(o object) diag.Problem {
		return diag.Problem{Code: diag.OverBudget, Object: o.ref(), Message: "20,000 parts, an object may multiply to " + schema.Thousands(budgetOf.Object) + " parts"}
	}
	open, closed := `{"domains":["b.example"],"routes":[{"route":{}}]}`, `{"domains":["b.example"],"routes":[{"direct_response":{"status":503}}]}`
	told := func(proxy, key, text string) func(*found) { return func(f *found) { f.told[proxy][key] = text } }
	refusedFor := func(text string) func(*found) {
		return func(f *found) { f.stored, f.problems, f.refused = false, nil, []refusal{{entry, 422, text}} }
	}
	for _, tc := range []struct {
		name   string
		change func(*found)
		want   string // of the complaint, "" for none
	}{
		{"all is well", func(*found) {}, ""},
		{"a withheld object is not named", func(f *found) { f.problems = nil }, "no Problem says that it is withheld"},
		{"a problem without numbers", func(f *found) { f.problems[0].Message = "too much" }, "the budget is not told"},
		{"an honest object is withheld", func(f *found) { f.problems = append(f.problems, over(quiet()[0])) }, "an honest object is to blame"},
		{"a view is withheld", func(f *found) { f.problems = append(f.problems, diag.Problem{Code: diag.NotPublished}) }, "a view is not published"},
		{"a refusal without numbers", refusedFor("multiplies to too much"), "refused without the numbers"},
		{"an object that is not valid", refusedFor("must be a host name"), "refused without the numbers"},
		{"a refusal", refusedFor("multiplies to too much: 1,000 hosts = 1,000,000 parts, and must be at most 100,000; split the object"), ""},
		{"a closed rule that is not named", told("hostile", "routes 80 b", closed), "is withheld, and no Problem says so"},
		{"a rule that is not there", func(f *found) { delete(f.told["hostile"], "routes 80 b") }, "is withheld, and no Problem says so"},
		{"an open rule that is named", func(f *found) { f.problems = append(f.problems, over(rule)) }, "is said to be withheld, and is not"},
		{"a service that lacks an endpoint", told("beside", "endpoints c|p-0", `{"endpoint":1}`), "is withheld, and no Problem says so"},
		{"an honest cluster is another one", told("gateway", "clusters out.web.quiet", "other"), "told otherwise"},
		{"an honest cluster is gone", func(f *found) { delete(f.told["gateway"], "clusters out.web.quiet") }, "is not told of clusters"},
		{"an honest host is another one", told("old", "routes/80 web.quiet", "other"), "told otherwise"},
		{"honest endpoints are gone beside rules for their host", func(f *found) { f.apart = false; delete(f.told["beside"], "endpoints web.quiet") }, "is not told of endpoints"},
		{"what becomes of other hosts", func(f *found) { delete(f.told["old"], "routes/80 allow_any") }, ""},
	} {
		f := found{objects: []object{entry, rule, counted}, stored: true, apart: true, problems: diag.List{over(entry)}, told: map[string]answers{}, quiet: map[string]answers{}}
		for _, p := range proxies {
			f.quiet[p.name] = answers{"clusters out.web.quiet": "c", "endpoints web.quiet": "e", "routes/80 web.quiet": "r", "routes/80 allow_any": "any"}
			f.told[p.name] = maps.Clone(f.quiet[p.name])
		}
		f.told["hostile"]["routes 80 b"], f.told["beside"]["endpoints c|p-0"] = open, `{"endpoint":1},{"endpoint":2}`
		tc.change(&f)
		got := f.judge()
		if tc.want == "" && len(got) > 0 || tc.want != "" && (len(got) != 1 || !strings.Contains(got[0], tc.want)) {
			t.Errorf("%s: got %q, want %q", tc.name, got, tc.want)
		}
	}
	var out complaints
	before, now := map[string]answers{"old": {"a": "1", "b": "2"}}, map[string]answers{"old": {"a": "1", "c": "3"}}
	out.compare(atTheEnd, before, now, everything)
	if len(out) != 2 || !strings.Contains(out[0], "not told of b") || !strings.Contains(out[1], "still told of c") {
		t.Errorf("what is left over: %q", out)
	}
}

// TestDrawnTwice: a seed is enough to have the same combination again.
func TestDrawnTwice(t *testing.T) {
	outside.Slow(t)
	for seed := range uint64(20) {
		if a, b := fmt.Sprint(newLife(seed, 1).draw(0).out), fmt.Sprint(newLife(seed, 1).draw(0).out); a != b {
			t.Errorf("seed %d draws other objects the second time", seed)
		}
	}
}
