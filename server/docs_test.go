package server_test

import (
	"github.com/pilot-api/pilot-api/server/servertest"

	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/pilot-api/pilot-api/internal/outside"
)

var (
	// docFile matches a fenced block to save: its name and its text.
	docFile = regexp.MustCompile("(?ms)^```yaml (\\S+)\n(.*?)^```$")
	// docCurl matches a command and the status code noted after it.
	docCurl = regexp.MustCompile(`(?m)^(curl .*\S) +# (\d+)$`)
)

// TestDocs runs every curl line of docs/api.md, in order, against a whole server.
func TestDocs(t *testing.T) {
	outside.Slow(t)
	withTool(t, "curl")
	page, err := os.ReadFile("../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, m := range docFile.FindAllSubmatch(page, -1) {
		if err := os.WriteFile(filepath.Join(dir, string(m[1])), m[2], 0o600); err != nil {
			t.Fatal(err)
		}
	}
	url := servertest.StartWhole(t)
	commands := docCurl.FindAllStringSubmatch(string(page), -1)
	if noted := strings.Count(string(page), "\ncurl "); len(commands) != noted || noted == 0 {
		t.Fatalf("%d of %d curl lines note a status code", len(commands), noted)
	}
	for _, m := range commands {
		line := strings.Replace(m[1], "curl ", "curl -sS -o body -w '%{http_code}' ", 1)
		cmd := exec.CommandContext(t.Context(), "sh", "-c", strings.ReplaceAll(line, "http://127.0.0.1:8080", url))
		cmd.Dir = dir
		code, err := cmd.CombinedOutput()
		if err != nil || string(code) != m[2] {
			body, _ := os.ReadFile(filepath.Join(dir, "body"))
			t.Errorf("%s\ngot %s (%v), want %s\n%s", m[1], code, err, m[2], body)
		}
	}
}
