package release_test

import (
	"os"
	"regexp"
	"testing"

	"github.com/pilot-api/pilot-api/internal/release"
)

func TestChangelogBeginsWithTheRelease(t *testing.T) {
	text, err := os.ReadFile("../../CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	first := regexp.MustCompile(`(?m)^## \[([0-9]+\.[0-9]+\.[0-9]+)\]`).FindSubmatch(text)
	if first == nil || "v"+string(first[1]) != release.Version {
		t.Errorf("the first release of the changelog is %q, that of the programs %s", first, release.Version)
	}
}
