package server_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/server"
	"github.com/pilot-api/pilot-api/store"
	"github.com/pilot-api/pilot-api/store/cache"
	"github.com/pilot-api/pilot-api/store/memory"
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
	url := startWhole(t)
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

// startWhole starts a server with cache and discovery, like the program.
func startWhole(t *testing.T) (url string) {
	t.Helper()
	mem, quiet := memory.New(), slog.New(slog.DiscardHandler)
	view := cache.New(mem, cache.Options{Log: quiet})
	mesh := discovery.New(discovery.Options{Source: view})
	ts := httptest.NewServer(asDescribed(t, server.New(server.Options{
		Store: store.Strict(mem), Reads: view, Discovery: mesh, Log: quiet,
		Ready: []server.Check{{Name: "discovery", Run: func(context.Context) error {
			if !mesh.Ready() {
				return discovery.ErrNotReady
			}
			return nil
		}}},
	}).Handler()))
	t.Cleanup(ts.Close)

	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	go func() { ended <- view.Run(ctx) }()
	go func() { ended <- mesh.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-ended; <-ended })
	w := &world{T: t, url: ts.URL}
	for w.do("GET", "/readyz", "").StatusCode != http.StatusOK {
		if ctx.Err() != nil {
			t.Fatal("nothing was ever compiled")
		}
	}
	return ts.URL
}
