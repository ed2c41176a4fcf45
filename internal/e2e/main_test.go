package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

const (
	root     = "../.."
	bookshop = root + "/examples/bookshop"
)

// installed builds the programs of the working tree, so that a test never runs
// what somebody built yesterday.
func installed(t *testing.T) Programs {
	t.Helper()
	build := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join("bin")+string(filepath.Separator), "./cmd/...")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", build, err, out)
	}
	programs, err := Installed(root)
	switch {
	case err == nil:
		return programs
	case os.Getenv("CI") != "":
		t.Fatal(err)
	default:
		t.Skipf("NOT TESTED, a program is missing: %v", err)
	}
	panic("unreachable")
}

// open opens a world that is closed, after all other cleanups, with the test.
func open(t *testing.T) *World {
	t.Helper()
	// The programs outlive t.Context, so that they end in order in Close.
	w, err := OpenWorld(context.WithoutCancel(t.Context()), installed(t), bookshop, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("pilot-api:\n%s\nEnvoy:\n%s", w.Pilot.tail(), w.Sidecar.tail())
		}
	})
	return w
}
