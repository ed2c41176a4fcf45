package outside

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestMakeEnvoyWithItsFolderOnPath: make envoy works again when .tools is on PATH, as the
// README says, and has an Envoy already: that one is no Envoy to use in its own place.
func TestMakeEnvoyWithItsFolderOnPath(t *testing.T) {
	tools, elsewhere := t.TempDir(), t.TempDir()
	script := func(dir, name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		return path
	}
	target := script(tools, "envoy", "echo envoy version: abc/1.40.0/Clean/RELEASE/x")
	script(tools, "python3", "exit 1") // It fetches nothing.
	run := func(path ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), "../tools/envoy.sh", target)
		cmd.Env = append(os.Environ(), "PATH="+strings.Join(append(path, os.Getenv("PATH")), ":"))
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	onPath := strings.Join([]string{tools, elsewhere}, ":")
	other := script(elsewhere, "envoy", "echo envoy version: abc/1.41.0/Clean/RELEASE/x")
	for range 2 { // The second time the target is a link to the other one.
		if out, err := run(onPath); err != nil || !strings.Contains(out, "using "+other) {
			t.Errorf("with another Envoy on PATH: %v: %s", err, out)
		}
	}
	script(elsewhere, "envoy", "echo envoy version: abc/1.20.0/Clean/RELEASE/x")
	if out, err := run(onPath); err == nil || !strings.Contains(out, "older than 1.30; fetching another") {
		t.Errorf("with an old Envoy on PATH: %v: %s", err, out)
	}
	if err := os.Remove(other); err != nil {
		t.Fatal(err)
	}
	if out, err := run(onPath); strings.Contains(out, "are the same file") {
		t.Errorf("with no other Envoy: %v: %s", err, out)
	}
}
