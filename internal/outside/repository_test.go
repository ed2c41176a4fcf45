package outside_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/pilot-api/pilot-api/internal/outside"
)

// knowsOutside are the files that may name what is not in a clone: they look
// for it, and go without.
var knowsOutside = map[string]bool{
	"internal/outside/outside.go":         true,
	"internal/outside/repository_test.go": true,
	"internal/conformance/main.go":        true,
}

var markdownLink = regexp.MustCompile(`\]\(([^)#]+)[^)]*\)`)

// A clone stands alone: no page links to what is not in it, and no text sends
// a reader to the data that only some machines have.
func TestNothingPointsOutside(t *testing.T) {
	root := outside.Root(t)
	links := 0
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		name, _ := filepath.Rel(root, path)
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != "." && (strings.HasPrefix(entry.Name(), ".") || name == "bin"):
			return fs.SkipDir
		case !entry.Type().IsRegular():
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if strings.Contains(string(text), "../shared") && !knowsOutside[name] {
			t.Errorf("%s names ../shared, which a clone has not", name)
		}
		if filepath.Ext(name) != ".md" {
			return nil
		}
		for _, link := range markdownLink.FindAllStringSubmatch(string(text), -1) {
			if strings.Contains(link[1], "://") {
				continue
			}
			links++
			target := filepath.Join(filepath.Dir(path), link[1])
			if inside, err := filepath.Rel(root, target); err != nil || strings.HasPrefix(inside, "..") {
				t.Errorf("%s: %s leaves the repository", name, link[1])
			} else if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: there is no %s", name, link[1])
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if links == 0 {
		t.Error("no link found in any page")
	}
}
