package envoy_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// realEnvoy is the program that `make tools` fetched, or the one on PATH.
func realEnvoy(t *testing.T) string {
	t.Helper()
	fetched, err := filepath.Abs("../.tools/envoy")
	if err != nil {
		t.Fatal(err)
	}
	for _, program := range []string{fetched, "envoy"} {
		if path, err := exec.LookPath(program); err == nil {
			return path
		}
	}
	missing(t, "an envoy in .tools (make tools) or on PATH")
	return ""
}

// missing skips a test for want of something from outside, but not in CI.
func missing(t *testing.T, what string) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatalf("not found: %s", what)
	}
	t.Skipf("SKIPPED, not found: %s", what)
}
