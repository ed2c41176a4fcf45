package archtest

import (
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.+)$`)
	// notInAnchor is what an anchor leaves out of its heading.
	notInAnchor = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// TestLinksOfPages fails if a page links to a file, a folder or a heading of the
// repository that does not exist.
func TestLinksOfPages(t *testing.T) {
	repo := repositoryOf(t)
	for _, page := range repo.pages() {
		text := pageText(t, page)
		for _, found := range link.FindAllStringSubmatch(inCode.ReplaceAllString(text, ""), -1) {
			target, err := url.Parse(found[1])
			if err != nil || target.Scheme != "" {
				continue
			}
			file := page
			if target.Path != "" {
				file = path.Join(path.Dir(page), target.Path)
			}
			if _, err := os.Stat(filepath.Join("../..", file)); err != nil {
				t.Errorf("%s links to %s: there is no such file or folder", page, found[1])
			} else if target.Fragment != "" && path.Ext(file) == ".md" && !anchors(pageText(t, file))[target.Fragment] {
				t.Errorf("%s links to %s: %s has no such heading", page, found[1], file)
			}
		}
	}
}

// pageText is a page without its fenced blocks.
func pageText(t *testing.T, page string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../..", page))
	if err != nil {
		t.Fatal(err)
	}
	return fence.ReplaceAllString(string(text), "")
}

// anchors are those that GitHub gives to the headings of a page.
func anchors(text string) map[string]bool {
	out := map[string]bool{}
	for _, found := range heading.FindAllStringSubmatch(text, -1) {
		title := notInAnchor.ReplaceAllString(strings.ToLower(found[1]), "")
		out[strings.ReplaceAll(strings.TrimSpace(title), " ", "-")] = true
	}
	return out
}
