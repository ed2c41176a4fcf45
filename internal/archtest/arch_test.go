// Package archtest checks the import tables of docs/decisions/001-house.md, which state
// the architecture. Only shipped code counts; test files may import parents. It also
// checks pages: the files, folders, tests, Go names and headings that they name must
// exist.
package archtest

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"path"
	"regexp"
	"strings"
	"testing"
)

const (
	module = "github.com/pilot-api/pilot-api/"
	house  = "../../docs/decisions/001-house.md"
)

// row is a line of the tables: packages, as patterns of path.Match, and what they may
// import of the project.
type row struct {
	packages, imports []string
	met               bool
}

func TestImports(t *testing.T) {
	rows := tables(t)
	for pkg, imports := range projectImports(t) {
		row := rowOf(rows, pkg)
		if row == nil {
			t.Errorf("package %s is in no table of docs/decisions/001-house.md: say there what it is for", pkg)
			continue
		}
		row.met = true
		for _, imp := range imports {
			if !matchesAny(row.imports, imp) {
				t.Errorf("%s imports %s, docs/decisions/001-house.md allows it only: %q", pkg, imp, row.imports)
			}
		}
	}
	for _, row := range rows {
		if !row.met {
			t.Errorf("docs/decisions/001-house.md has a line for %q, and there is no such package", row.packages)
		}
	}
}

// quoted matches package names in the tables.
var quoted = regexp.MustCompile("`([a-z0-9/*-]+)`")

// tables returns the lines that say what a package may import.
func tables(t *testing.T) []*row {
	t.Helper()
	text, err := os.ReadFile(house)
	if err != nil {
		t.Fatal(err)
	}
	var rows []*row
	inTable := false
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		switch {
		case len(cells) != 3:
			inTable = false
		case strings.TrimSpace(cells[2]) == "may import":
			inTable = true
		case inTable && !strings.Contains(line, "---"):
			rows = append(rows, &row{packages: names(t, cells[0]), imports: names(t, cells[2])})
		}
	}
	return rows
}

// names returns the packages of a cell, which contains nothing else.
func names(t *testing.T, cell string) []string {
	t.Helper()
	var out []string
	for _, found := range quoted.FindAllStringSubmatch(cell, -1) {
		out = append(out, found[1])
	}
	if rest := strings.Trim(quoted.ReplaceAllString(cell, ""), " ,"); rest != "" && (rest != "nothing" || len(out) > 0) {
		t.Errorf("docs/decisions/001-house.md: %q is no list of packages and not \"nothing\"", cell)
	}
	return out
}

func rowOf(rows []*row, pkg string) *row {
	for _, row := range rows {
		if matchesAny(row.packages, pkg) {
			return row
		}
	}
	return nil
}

func matchesAny(patterns []string, pkg string) bool {
	for _, p := range patterns {
		if ok, _ := path.Match(p, pkg); ok {
			return true
		}
	}
	return false
}

// projectImports maps each package of the module to those that it imports from it, both
// relative to the module.
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
