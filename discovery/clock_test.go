package discovery

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// TestAgesAreMonotonic: the wall clock may jump by hours, and every age here
// must stay what it is. A time.Time has the monotonic clock with it until one of
// these takes it away.
func TestAgesAreMonotonic(t *testing.T) {
	forbidden := map[string]bool{
		"Unix": true, "UnixMilli": true, "UnixMicro": true, "UnixNano": true, "Date": true,
		"Round": true, "Truncate": true, "UTC": true, "Local": true, "In": true, "AddDate": true, "Parse": true,
	}
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	rooms, err := filepath.Glob("*/*.go")
	if err != nil || len(rooms) == 0 {
		t.Fatal(rooms, err)
	}
	set := token.NewFileSet()
	for _, name := range append(files, rooms...) {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(set, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				if f, ok := call.Fun.(*ast.SelectorExpr); ok && forbidden[f.Sel.Name] {
					t.Errorf("%v: %s is of the wall clock", set.Position(n.Pos()), f.Sel.Name)
				}
			}
			return true
		})
	}
}
