// Package archtest keeps the import table of docs/decisions/001-house.md: the
// architecture as a statement of policy. Only shipped code counts; test files
// may look up.
package archtest

import (
	"bufio"
	"bytes"
	"os/exec"
	"path"
	"strings"
	"testing"
)

const module = "github.com/pilot-api/pilot-api/"

// allowed lists, for each package (path patterns as in path.Match), what of the
// project it may import. A package that no row names fails the test.
var allowed = []struct{ pkg, imports string }{
	{"diag", ""},
	{"re2", ""},
	{"headerformat", ""},
	{"credential", ""},
	{"schema", "credential diag re2 headerformat"},
	{"store", "diag schema"},
	{"store/storetest", "diag schema store"},
	{"store/etcd/etcdtest", "diag schema store store/etcd"},
	{"store/*", "diag schema store"},
	{"client", "diag schema store explain"},
	{"mesh", "diag schema"},
	{"ir", "credential diag"},
	{"explain", "credential diag ir"},
	{"compile", "credential diag re2 headerformat schema mesh ir compile/query"},
	{"compile/query", ""},
	{"envoy", "re2 headerformat ir"},
	{"envoy/v1", "diag ir envoy"},
	{"envoy/v3", "diag re2 headerformat ir envoy"},
	{"discovery", "credential diag schema mesh ir compile explain envoy envoy/v1 envoy/v3"},
	{"server", "diag schema store discovery explain"},
	{"server/ads", "discovery"},
	{"cmd/istioctl", "diag schema store store/cache client mesh compile explain envoy ir internal/release"},
	{"cmd/pilot-api", "diag schema store store/* mesh discovery server server/ads internal/release"},
	// The testbed runs any program; the end-to-end world drives ours and knows
	// none of their code.
	{"internal/testbed", ""},
	{"internal/e2e", "internal/testbed"},
	{"internal/e2e/bridge", ""},
	{"internal/e2e/*", "internal/e2e"},
	{"internal/conformance", "schema mesh store store/* discovery server"},
	// The evaluator reads answers as Envoy does and knows nothing of where
	// they came from; meshgen draws what goes in.
	{"internal/evaluator", ""},
	{"internal/meshgen", "schema mesh ir internal/evaluator"},
	// The checker judges histories; who makes them knows the programs.
	{"internal/consistency", "schema store"},
	{"internal/consistency/soak", "schema store store/cache store/etcd client internal/consistency internal/testbed"},
	{"internal/yardstick", "internal/testbed"},
	{"internal/golden", ""},
	{"internal/outside", ""},
	{"internal/release", ""},
	{"internal/scenario", ""},
	{"internal/selfsigned", ""},
	{"internal/simulated", "mesh discovery"},
	{"internal/v1schema", "internal/outside"},
	{"internal/archtest", ""},
	{"internal/overload", ""},
}

func TestImports(t *testing.T) {
	seen := 0
	for pkg, imports := range projectImports(t) {
		seen++
		row, ok := policy(pkg)
		if !ok {
			t.Errorf("package %s is not in the import table: say in docs/decisions/001-house.md what it is for, then add it", pkg)
			continue
		}
		for _, imp := range imports {
			if !matchesAny(strings.Fields(row), imp) {
				t.Errorf("%s imports %s, the table allows it only: %q", pkg, imp, row)
			}
		}
	}
	if seen < 15 {
		t.Fatalf("saw only %d packages; is the listing broken?", seen)
	}
}

func policy(pkg string) (string, bool) {
	for _, row := range allowed {
		if ok, _ := path.Match(row.pkg, pkg); ok {
			return row.imports, true
		}
	}
	return "", false
}

func matchesAny(patterns []string, pkg string) bool {
	for _, p := range patterns {
		if ok, _ := path.Match(p, pkg); ok {
			return true
		}
	}
	return false
}

// projectImports maps each package of the module to those it imports from it,
// both relative to the module.
func projectImports(t *testing.T) map[string][]string {
	t.Helper()
	cmd := exec.Command("go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "./...")
	cmd.Dir = "../.."
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	graph := map[string][]string{}
	lines := bufio.NewScanner(bytes.NewReader(out))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		pkg := strings.TrimPrefix(fields[0], module)
		graph[pkg] = nil
		for _, imp := range fields[1:] {
			if rest, ok := strings.CutPrefix(imp, module); ok {
				graph[pkg] = append(graph[pkg], rest)
			}
		}
	}
	return graph
}
