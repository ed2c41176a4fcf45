package wholefile_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pilot-api/pilot-api/internal/wholefile"
)

func TestReadAtMost(t *testing.T) {
	name := filepath.Join(t.TempDir(), "f")
	if _, err := wholefile.ReadAtMost(name, 4); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	if err := os.WriteFile(name, []byte("1234"), 0o600); err != nil {
		t.Fatal(err)
	}
	if text, err := wholefile.ReadAtMost(name, 4); err != nil || string(text) != "1234" {
		t.Errorf("%q, %v", text, err)
	}
	if text, err := wholefile.ReadAtMost(name, 3); text != nil || err == nil || !strings.Contains(err.Error(), name+" has more than 3 bytes") {
		t.Errorf("a longer one: %q, %v", text, err)
	}
	if _, err := wholefile.ReadAtMost("/dev/zero", 1000); err == nil {
		t.Error("a file without an end is read")
	}
}
