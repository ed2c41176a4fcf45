package wholefile_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/pilot-api/pilot-api/internal/wholefile"
)

func TestWrite(t *testing.T) {
	name := filepath.Join(t.TempDir(), "file")
	for _, text := range []string{"one", "another"} {
		if err := wholefile.Write(name, 0o640, wholefile.Text([]byte(text))); err != nil {
			t.Fatal(err)
		}
		is(t, name, text)
	}
	info, err := os.Stat(name)
	if err != nil || info.Mode() != 0o640 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

// TestFailedWrite: the file stays, and there is nothing beside it.
func TestFailedWrite(t *testing.T) {
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, []byte("one"), 0o600); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	err := wholefile.Write(name, 0o600, func(f *os.File) error {
		_, err := f.WriteString("half")
		return errors.Join(err, broken)
	})
	if !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	is(t, name, "one")
	left, err := os.ReadDir(filepath.Dir(name))
	if err != nil || len(left) != 1 {
		t.Errorf("there are %v, %v", left, err)
	}
}

func is(t *testing.T, name, want string) {
	t.Helper()
	got, err := os.ReadFile(name)
	if err != nil || string(got) != want {
		t.Errorf("%s: %q, %v, want %q", name, got, err, want)
	}
}

// TestWriteInStaysInside: no name and no link leads out of the folder.
func TestWriteInStaysInside(t *testing.T) {
	dir := t.TempDir()
	inside, outside := filepath.Join(dir, "inside"), filepath.Join(dir, "outside")
	for _, d := range []string{inside, outside} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	kept := filepath.Join(outside, "file")
	if err := os.WriteFile(kept, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, to := range map[string]string{"folder": outside, "file": kept} {
		if err := os.Symlink(to, filepath.Join(inside, name)); err != nil {
			t.Fatal(err)
		}
	}
	root, err := os.OpenRoot(inside)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for name, allowed := range map[string]bool{"../outside/file": false, "folder/file": false, "folder/new": false, kept: false, "file": true, "new": true} {
		if err := wholefile.WriteIn(root, name, 0o600, wholefile.Text([]byte("theirs"))); (err == nil) != allowed {
			t.Errorf("%s: %v", name, err)
		}
	}
	is(t, kept, "mine")
	is(t, filepath.Join(inside, "file"), "theirs")
	if left, err := os.ReadDir(outside); err != nil || len(left) != 1 {
		t.Errorf("outside there are %v, %v", left, err)
	}
}
