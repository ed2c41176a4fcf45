// Package outside finds things for tests that are not in the repository: tools that make
// fetches, and recorded data that some machines have beside the repository. A test that
// lacks what it needs is skipped with its reason, and fails if CI is set.
package outside

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Tool returns the path of a program in .tools or, failing that, on PATH.
func Tool(t testing.TB, name string) string {
	t.Helper()
	for _, program := range []string{filepath.Join(Root(t), ".tools", name), name} {
		if path, err := exec.LookPath(program); err == nil {
			return path
		}
	}
	Missing(t, name+" in .tools (make tools) or on PATH")
	return ""
}

// Optional returns the path of a program in .tools that nobody has to have, because it takes
// long to build. A test without it is skipped, also if CI is set, and names the command that
// builds it.
func Optional(t testing.TB, name, command string) string {
	t.Helper()
	path, err := exec.LookPath(filepath.Join(Root(t), ".tools", name))
	if err != nil {
		t.Skipf("NOT TESTED: there is no %s in .tools; %s builds it", name, command)
	}
	return path
}

// Shared returns a path in the recorded data.
func Shared(t testing.TB, path ...string) string {
	t.Helper()
	full := shared(t, path)
	if _, err := os.Stat(full); err != nil {
		Missing(t, filepath.Join(append([]string{"../shared"}, path...)...))
	}
	return full
}

// HaveShared reports whether a path exists in the recorded data, for a test of which only
// a part needs it. If it does not exist and CI is set, the test fails.
func HaveShared(t testing.TB, path ...string) bool {
	t.Helper()
	if _, err := os.Stat(shared(t, path)); err == nil {
		return true
	}
	if os.Getenv("CI") != "" {
		Missing(t, filepath.Join(append([]string{"../shared"}, path...)...))
	}
	return false
}

func shared(t testing.TB, path []string) string {
	return filepath.Join(append([]string{filepath.Dir(Root(t)), "shared"}, path...)...)
}

// Root returns the absolute path of the repository.
func Root(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("the test does not run below go.mod")
		}
	}
}

// Missing skips a test that lacks something, or fails it if CI is set.
func Missing(t testing.TB, what string) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatalf("not found: %s", what)
	}
	t.Skipf("NOT TESTED, not found: %s", what)
}

// Slow skips a test that takes more than a second if go test -short asks for the fast
// ones.
func Slow(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("slow: go test runs it without -short")
	}
}
