package archtest

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	listOfFiles = regexp.MustCompile(`(?m)^\t[a-z0-9_*]+\.go\b`)
	fileName    = regexp.MustCompile(`[a-z0-9_*]+\.go\b`)
)

// TestListsOfFilesAreWhole: a package comment that tells what is in which file tells it
// of all but the one that it stands in, and of none that is not there.
func TestListsOfFilesAreWhole(t *testing.T) {
	seen := 0
	for dir, files := range sources(t) {
		for _, at := range files {
			comment := packageComment(t, filepath.Join(dir, at))
			if !listOfFiles.MatchString(comment) {
				continue
			}
			seen++
			named := fileName.FindAllString(comment, -1)
			for _, file := range files {
				if file != at && !slices.ContainsFunc(named, func(name string) bool { return means(name, file) }) {
					t.Errorf("%s/%s: its list of files is without %s", dir, at, file)
				}
			}
			for _, name := range named {
				if !slices.ContainsFunc(files, func(file string) bool { return means(name, file) }) {
					t.Errorf("%s/%s: there is no file %s", dir, at, name)
				}
			}
		}
	}
	if seen == 0 {
		t.Error("saw no list of files; are they written otherwise now?")
	}
}

// sources are the files of shipped code, by folder.
func sources(t *testing.T) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	err := filepath.WalkDir("../..", func(at string, entry fs.DirEntry, err error) error {
		switch name := entry.Name(); {
		case err != nil:
			return err
		case entry.IsDir() && (name == "testdata" || name != ".." && strings.HasPrefix(name, ".")):
			return fs.SkipDir
		case strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go"):
			out[filepath.Dir(at)] = append(out[filepath.Dir(at)], name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func packageComment(t *testing.T, file string) string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.PackageClauseOnly|parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	return parsed.Doc.Text()
}

// means reports whether a name, such as v1*.go, is that of a file.
func means(name, file string) bool {
	is, err := path.Match(name, file)
	return is && err == nil
}
