package archtest

import (
	"os"
	"regexp"
	"testing"
)

const dependencies = "../../docs/decisions/003-dependencies.md"

var (
	// directModule is a line of go.mod without "// indirect".
	directModule = regexp.MustCompile(`(?m)^\t([a-z][^ ]*\.[^ ]*/?[^ ]*) v[^ ]+$`)
	tableRow     = regexp.MustCompile(`(?m)^\| (.*?) \|`)
)

// TestDependenciesAreListed fails if the table of direct dependencies lacks a module that
// go.mod requires directly, or has one that go.mod does not require at all.
func TestDependenciesAreListed(t *testing.T) {
	required, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(dependencies)
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for _, row := range tableRow.FindAllStringSubmatch(string(page), -1) {
		for _, module := range inCode.FindAllStringSubmatch(row[1], -1) {
			listed[module[1]] = true
		}
	}
	direct := directModule.FindAllStringSubmatch(string(required), -1)
	if len(direct) < 20 {
		t.Fatalf("found only %d direct modules in go.mod", len(direct))
	}
	for _, module := range direct {
		if !listed[module[1]] {
			t.Errorf("go.mod requires %s directly: docs/decisions/003-dependencies.md must say what it is used for", module[1])
		}
	}
	for module := range listed {
		if !regexp.MustCompile(`(?m)^\t` + regexp.QuoteMeta(module) + ` v`).Match(required) {
			t.Errorf("docs/decisions/003-dependencies.md has %s, which go.mod does not require", module)
		}
	}
}
