package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/pilot-api/pilot-api/internal/terminal"
)

// TestStreamsAreTheOnlyWayOut: nothing is written past them. What may is named here,
// with its file.
func TestStreamsAreTheOnlyWayOut(t *testing.T) {
	allowed := map[string][]string{
		"os.Stdout":  {"root/run.go"},
		"os.Stderr":  {"root/run.go"},
		".Outside":   {"internal/cli/program.go", "edit/edit.go"}, // An editor draws.
		".raw":       {"internal/cli/stream.go"},
		"ForProgram": {"internal/cli/stream.go", "internal/printer/jsonpath.go"},
	}
	met := map[string][]string{}
	eachSource(t, func(file string, n ast.Node) {
		for _, name := range namesOf(n) {
			files, watched := allowed[name]
			if watched && slices.Contains(files, file) {
				met[name] = append(met[name], file)
			} else if watched || prints(name) {
				t.Errorf("%s: %s goes past the streams of the CLI; allowed in %q", file, name, files)
			}
		}
		if text := literal(n); strings.ContainsFunc(text, steers) {
			t.Errorf("%s: the text %q steers a terminal; only terminal.Writer.Redraw does that", file, text)
		}
	})
	for name, files := range allowed {
		for _, file := range files {
			if !slices.Contains(met[name], file) {
				t.Errorf("%s: has no %s any more; take it out of this test", file, name)
			}
		}
	}
}

func eachSource(t *testing.T, visit func(file string, n ast.Node)) {
	t.Helper()
	err := filepath.WalkDir(".", func(name string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if n != nil {
				visit(filepath.ToSlash(name), n)
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// namesOf are the spellings of a name in the list of what is allowed.
func namesOf(n ast.Node) []string {
	switch n := n.(type) {
	case *ast.Ident:
		return []string{n.Name}
	case *ast.SelectorExpr:
		names := []string{"." + n.Sel.Name}
		if pkg, ok := n.X.(*ast.Ident); ok {
			names = append(names, pkg.Name+"."+n.Sel.Name)
		}
		return names
	case *ast.CallExpr:
		if f, ok := n.Fun.(*ast.Ident); ok {
			return []string{f.Name + "()"}
		}
	}
	return nil
}

func prints(name string) bool {
	return slices.Contains([]string{"fmt.Print", "fmt.Printf", "fmt.Println", "print()", "println()", "log.Print", "log.Printf", "log.Println"}, name)
}

func literal(n ast.Node) string {
	lit, ok := n.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return ""
	}
	text, err := strconv.Unquote(lit.Value)
	if err != nil {
		return ""
	}
	return text
}

func steers(r rune) bool { return r != '\n' && r != '\t' && terminal.Unsafe(r) }
