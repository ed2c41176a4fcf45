package export_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/cli"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/clitest"
)

// TestExportStaysInItsFolder: whatever a server calls its objects, and wherever links in
// the folder lead, nothing outside the folder is written or removed.
func TestExportStaysInItsFolder(t *testing.T) {
	for _, c := range []struct {
		name            string
		namespace, call string // of the object
		links           map[string]string
		fails           string // "" when the export is done
	}{
		{name: "as it should be", namespace: "books", call: "a"},
		{name: "name goes up", namespace: "books", call: "../../../outside/keep", fails: "an object that cannot exist"},
		{name: "namespace goes up", namespace: "../outside", call: "keep", fails: "an object that cannot exist"},
		{name: "namespace is above", namespace: "..", call: "keep", fails: "an object that cannot exist"},
		{name: "absolute", namespace: "/etc", call: "keep", fails: "an object that cannot exist"},
		{name: "name with slash", namespace: "books", call: "a/b", fails: "an object that cannot exist"},
		{name: "name with a null", namespace: "books", call: "a\x00", fails: "an object that cannot exist"},
		{name: "no name", namespace: "books", call: "", fails: "it has no name"},
		{name: "namespace is a link out", namespace: "books", call: "keep", links: map[string]string{"books": "../outside"}, fails: "books"},
		{name: "kind is a link out", namespace: "books", call: "keep", links: map[string]string{"books/routerules": "../../outside/routerules"}, fails: "routerules"},
		{name: "kind is an absolute link out", namespace: "books", call: "keep", links: map[string]string{"books/routerules": "OUTSIDE/routerules"}, fails: "routerules"},
		{name: "file is a link out", namespace: "books", call: "keep", links: map[string]string{"books/routerules/keep.yaml": "../../../outside/routerules/keep.yaml"}},
		{name: "another namespace is a link out", namespace: "books", call: "a", links: map[string]string{"shop": "../outside"}},
		{name: "another kind is a link out", namespace: "books", call: "a", links: map[string]string{"books/gateways": "../../outside/routerules"}},
		{name: "another file is a link out", namespace: "books", call: "a", links: map[string]string{"books/routerules/old.yaml": "../../../outside/routerules/keep.yaml"}},
		{name: "a link inside", namespace: "books", call: "a", links: map[string]string{"books": "shelf"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			api := httptest.NewServer(serverOf(c.namespace, c.call))
			t.Cleanup(api.Close)
			dir := t.TempDir()
			outside, folder := filepath.Join(dir, "outside"), filepath.Join(dir, "mesh")
			for _, d := range []string{filepath.Join(outside, "routerules"), filepath.Join(folder, "shelf")} {
				if err := os.MkdirAll(d, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			for _, f := range []string{"keep.yaml", "routerules/keep.yaml"} {
				if err := os.WriteFile(filepath.Join(outside, f), []byte("mine"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			for at, to := range c.links {
				at = filepath.Join(folder, at)
				if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.Symlink(strings.Replace(to, "OUTSIDE", outside, 1), at); err != nil {
					t.Fatal(err)
				}
			}
			stdout, stderr, code := clitest.Run(t, api.URL, "", "export", "-A", "-o", folder+"/")
			if (code == cli.ExitDone) != (c.fails == "") || !strings.Contains(stderr, c.fails) {
				t.Errorf("exit %d: %s%s", code, stdout, stderr)
			}
			if got := filesIn(t, dir, "mesh"); got != "outside/keep.yaml=mine outside/routerules/keep.yaml=mine" {
				t.Errorf("outside the folder there is %s", got)
			}
			text, err := os.ReadFile(filepath.Join(folder, c.namespace, "routerules", c.call+".yaml"))
			if c.fails == "" && (err != nil || !strings.Contains(string(text), "name: "+c.call)) {
				t.Errorf("the file is %q, %v", text, err)
			}
		})
	}
}

// TestExportFolderHasPipes: a named pipe in the place of a file is neither read, written
// nor removed.
func TestExportFolderHasPipes(t *testing.T) {
	api := httptest.NewServer(serverOf("books", "a"))
	t.Cleanup(api.Close)
	for name, fails := range map[string]string{"a": "a.yaml: this is a named pipe", "old": ""} {
		folder := t.TempDir()
		pipe := filepath.Join(folder, "books", "routerules", name+".yaml")
		if err := os.MkdirAll(filepath.Dir(pipe), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Mkfifo(pipe, 0o600); err != nil {
			t.Fatal(err)
		}
		stdout, stderr, code := clitest.Run(t, api.URL, "", "export", "-A", "-o", folder)
		if (code == cli.ExitDone) != (fails == "") || !strings.Contains(stderr, fails) {
			t.Errorf("exit %d: %s%s", code, stdout, stderr)
		}
		if info, err := os.Lstat(pipe); err != nil || info.Mode()&fs.ModeNamedPipe == 0 {
			t.Errorf("the named pipe is %v, %v", info, err)
		}
	}
}

// serverOf has one RouteRule, of any name.
func serverOf(namespace, name string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		items := []any{}
		if strings.HasSuffix(r.URL.Path, "/routerules") {
			items = append(items, map[string]any{
				"apiVersion": "config.istio.io/v1alpha2", "kind": "RouteRule",
				"metadata": map[string]any{"name": name, "namespace": namespace, "resourceVersion": "1", "uid": "u"},
				"spec":     map[string]any{"destination": map[string]any{"name": "a"}},
			})
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"apiVersion": "v1", "kind": "List", "metadata": map[string]any{"resourceVersion": "1"}, "items": items})
	})
}

// filesIn are all files below a folder with their texts, but for those below one in it.
func filesIn(t *testing.T, dir, but string) string {
	t.Helper()
	var all []string
	for _, name := range []string{"*", "*/*", "*/*/*", "*/*/*/*"} {
		found, err := filepath.Glob(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range found {
			at, err := filepath.Rel(dir, f)
			if err != nil {
				t.Fatal(err)
			}
			if text, err := os.ReadFile(f); err == nil && !strings.HasPrefix(at, but+"/") {
				all = append(all, fmt.Sprintf("%s=%s", at, text))
			}
		}
	}
	return strings.Join(all, " ")
}
