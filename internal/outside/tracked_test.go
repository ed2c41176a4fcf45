package outside_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pilot-api/pilot-api/internal/outside"
)

// TestNothingBuiltIsTracked checks that the repository has only text that people wrote:
// no program, archive or recording that a commit took along.
func TestNothingBuiltIsTracked(t *testing.T) {
	const most = 512 << 10 // bytes; the largest text has about a fifth of that
	root := outside.Root(t)
	list := exec.Command("git", "ls-files", "-z")
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		if _, err := os.Stat(filepath.Join(root, ".git")); err == nil {
			outside.Missing(t, "git, to list the files of this clone")
		}
		t.Skip("NOT CHECKED: this is no clone, so nobody knows which files are tracked")
	}
	names := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	for _, name := range names {
		// A file that was removed and not committed is gone.
		if info, err := os.Lstat(filepath.Join(root, name)); err == nil && info.Size() > most {
			t.Errorf("%s has %d bytes, at most %d are allowed: is it built or fetched? Remove it from git and add it to .gitignore", name, info.Size(), most)
		}
	}
	if len(names) < 100 {
		t.Errorf("found only %d tracked files", len(names))
	}
}
