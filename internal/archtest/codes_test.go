package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestProblemsHaveCodes checks that code which makes a problem sets its code
// (docs/decisions/025-message-codes.md). A problem with only a message is for display.
func TestProblemsHaveCodes(t *testing.T) {
	seen := 0
	for _, pkg := range []string{"schema", "mesh", "compile", "discovery", "discovery/*"} {
		files, err := filepath.Glob(filepath.Join("../..", pkg, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("no files of %s: %v", pkg, err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			for _, made := range problemsIn(t, file) {
				if seen++; !made.fields["Code"] {
					t.Errorf("%s: a problem without a code", made.at)
				}
			}
		}
	}
	if seen < 20 {
		t.Errorf("saw only %d problems; are they made otherwise now?", seen)
	}
}

// literal is a diag.Problem in the source.
type literal struct {
	at     token.Position
	fields map[string]bool
}

func problemsIn(t *testing.T, file string) []literal {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, file, text, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var found []literal
	ast.Inspect(parsed, func(n ast.Node) bool {
		made, ok := n.(*ast.CompositeLit)
		if !ok {
			return true
		}
		of, ok := made.Type.(*ast.SelectorExpr)
		if !ok || of.Sel.Name != "Problem" {
			return true
		}
		l := literal{files.Position(made.Pos()), map[string]bool{}}
		for _, field := range made.Elts {
			if pair, ok := field.(*ast.KeyValueExpr); ok {
				l.fields[pair.Key.(*ast.Ident).Name] = true
			}
		}
		if l.fields["Severity"] {
			found = append(found, l)
		}
		return true
	})
	return found
}
