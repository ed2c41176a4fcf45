package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var backEndWords = regexp.MustCompile(`(?i)\benvoys? (of )?(the )?v[13]\b|\bv[13] (api|envoys?)\b|\b[celr]ds\b|\bxds\b`)

// TestNobodysDialect: what decides what a proxy does is said without a word about
// who spells it.
func TestNobodysDialect(t *testing.T) {
	for _, pkg := range []string{"ir", "compile"} {
		files, err := filepath.Glob(filepath.Join("../..", pkg, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("no files of %s: %v", pkg, err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, found := range backEndWords.FindAllString(string(text), -1) {
				t.Errorf("%s says %q: that is a back-end's business", file, found)
			}
		}
	}
}
