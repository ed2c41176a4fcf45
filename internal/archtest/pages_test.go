package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

var (
	fence  = regexp.MustCompile("(?ms)^```.*?^```")
	inCode = regexp.MustCompile("`([^`\n]+)`")
	// pathText is a path of the repository; * and <name> stand for any text.
	pathText = regexp.MustCompile(`^[A-Za-z0-9_*<][A-Za-z0-9_.*<>-]*(/[A-Za-z0-9_.*<>-]+)*/?$`)
	holder   = regexp.MustCompile(`<[^<>]+>`)
	testText = regexp.MustCompile(`^(Test|Benchmark|Fuzz)[A-Z][A-Za-z0-9]*$`)
	// nameText is an exported name of a package, perhaps with a method or field.
	nameText = regexp.MustCompile(`^([a-z][a-z0-9]*)\.([A-Z][A-Za-z0-9]*)(?:\.([A-Z][A-Za-z0-9]*))?$`)
)

// TestPagesNameWhatExists fails if a page names, in backquotes, a file, a folder, a test
// or an exported Go name of the repository that does not exist.
func TestPagesNameWhatExists(t *testing.T) {
	repo := repositoryOf(t)
	seen := 0
	for _, page := range repo.pages() {
		for _, found := range inCode.FindAllStringSubmatch(pageText(t, page), -1) {
			known, why := repo.check(found[1])
			if known {
				seen++
			}
			if why != "" {
				t.Errorf("%s says `%s`: %s", page, found[1], why)
			}
		}
	}
	// Names of each form, right and wrong.
	for name, want := range map[string]bool{
		"store/strict.go": true, "store/nothing.go": false,
		"store/etcd": true, "store/nothing": false, "store/*": true, "store/": true,
		"envoy/v3/prox*.go": true, "envoy/v3/nothing*.go": false,
		"compile/<kind>.go": true, "compile/<kind>.txt": false,
		"strict.go": true, "nothing.go": false,
		"TestImports": true, "TestNothingOfThatName": false,
		"store.Strict": true, "store.Nothing": false, "store.Op.Evaluate": true, "store.Op.Nothing": false,
		// Names of others are not checked.
		"sigs.k8s.io/yaml": true, "/etc/nothing.yaml": true, "text/plain": true, "http.Client": true,
	} {
		if _, why := repo.check(name); (why == "") != want {
			t.Errorf("%s is judged wrongly: %q", name, why)
		}
	}
	if seen < 100 {
		t.Errorf("recognized only %d names of files, folders and declarations: are they written otherwise now?", seen)
	}
}

// repository is everything that pages may name.
type repository struct {
	files, folders []string                   // paths from the root, with slashes
	names          map[string]map[string]bool // by the last part of a package's path: what its files declare
	tests          map[string]bool
}

// theRepository reads it once for all tests.
var theRepository = sync.OnceValues(readRepository)

func readRepository() (*repository, error) {
	r := &repository{names: map[string]map[string]bool{}, tests: map[string]bool{}}
	err := filepath.WalkDir("../..", func(at string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := strings.TrimPrefix(filepath.ToSlash(at), "../../")
		switch {
		case entry.IsDir() && strings.HasPrefix(entry.Name(), ".") && entry.Name() != "..":
			return fs.SkipDir
		case entry.IsDir():
			r.folders = append(r.folders, name)
		default:
			r.files = append(r.files, name)
			if strings.HasSuffix(name, ".go") && !strings.Contains(name, "testdata/") {
				return r.declare(at, path.Base(path.Dir(name)))
			}
		}
		return nil
	})
	return r, err
}

func repositoryOf(t *testing.T) *repository {
	t.Helper()
	r, err := theRepository()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// declare notes the functions, methods, types, fields, constants and variables of a file.
func (r *repository) declare(file, folder string) error {
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	names := r.names[folder]
	if names == nil {
		names = map[string]bool{}
		r.names[folder] = names
	}
	isTest := strings.HasSuffix(file, "_test.go")
	for _, decl := range parsed.Decls {
		if f, ok := decl.(*ast.FuncDecl); ok && isTest {
			r.tests[f.Name.Name] = true
		}
		if isTest {
			continue
		}
		ast.Inspect(decl, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.BlockStmt:
				return false
			case *ast.FuncDecl:
				names[n.Name.Name] = true
			case *ast.TypeSpec:
				names[n.Name.Name] = true
			case *ast.ValueSpec:
				for _, name := range n.Names {
					names[name.Name] = true
				}
			case *ast.Field:
				for _, name := range n.Names {
					names[name.Name] = true
				}
			}
			return true
		})
	}
	return nil
}

// pages are README.md, CONTRIBUTING.md and all pages of docs.
func (r *repository) pages() []string {
	var out []string
	for _, file := range r.files {
		if path.Ext(file) == ".md" && (path.Dir(file) == "." || strings.HasPrefix(file, "docs/")) && file != "CHANGELOG.md" {
			out = append(out, file)
		}
	}
	return out
}

// check reports whether text in backquotes has the form of a name of the repository, and
// why the repository has no such name.
func (r *repository) check(text string) (known bool, why string) {
	if testText.MatchString(text) {
		if !r.tests[text] {
			return true, "there is no such test"
		}
		return true, ""
	}
	if name := nameText.FindStringSubmatch(text); name != nil {
		declared := r.names[name[1]]
		switch {
		case declared == nil:
			return false, ""
		case !declared[name[2]]:
			return true, "package " + name[1] + " declares no " + name[2]
		case name[3] != "" && !declared[name[3]]:
			return true, "package " + name[1] + " declares no " + name[3]
		}
		return true, ""
	}
	if !pathText.MatchString(text) {
		return false, ""
	}
	pattern := holder.ReplaceAllString(strings.TrimSuffix(text, "/"), "*")
	first, _, isPath := strings.Cut(pattern, "/")
	switch {
	case isPath && slices.Contains(r.folders, first):
		if !matches(pattern, r.files) && !matches(pattern, r.folders) {
			return true, "there is no such file or folder"
		}
		return true, ""
	case !isPath && path.Ext(pattern) == ".go":
		if !slices.ContainsFunc(r.files, func(file string) bool { return means(pattern, path.Base(file)) }) {
			return true, "there is no such file"
		}
		return true, ""
	}
	return false, ""
}

func matches(pattern string, names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return means(pattern, name) })
}
