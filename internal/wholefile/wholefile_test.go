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
