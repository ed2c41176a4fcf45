package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pilot-api/pilot-api/internal/testbed"
)

// TestWrongData: a server does not start, ready and with nothing in it, on data that it
// does not find: proxies would be told a mesh without objects.
func TestWrongData(t *testing.T) {
	data := t.TempDir()
	first := startProgram(t, data)
	if !first.post("kept", 100) {
		t.Fatal("nothing was written")
	}
	first.Kill()
	again := startProgram(t, data) // As it should be.
	again.Kill()

	refused := func(code int, word string, flags ...string) {
		t.Helper()
		dir := t.TempDir()
		args := append([]string{"--listen", "127.0.0.1:0", "--grpc-listen", "", "--data-dir", data}, flags...)
		p := testbed.NewProcess(dir, "pilot-api", os.Args[0], args...)
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
		defer p.Kill()
		<-p.Ended()
		if got := p.ExitCode(); got != code || !strings.Contains(p.Tail(), word) {
			t.Errorf("%v: exit code %d, want %d with %q in\n%s", flags, got, code, word, p.Tail())
		}
	}
	refused(exitFailed, `those that there are have "/pilot-api"`, "--etcd-prefix", "/other")
	refused(exitUsage, "must not be empty", "--etcd-prefix=")

	member := filepath.Join(data, "member")
	if err := os.Rename(member, member+".away"); err != nil {
		t.Fatal(err)
	}
	refused(exitStore, "objects are gone")
	if err := os.Mkdir(member, 0o700); err != nil {
		t.Fatal(err)
	}
	refused(exitStore, "objects are gone")
	if err := os.Remove(member); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(member+".away", member); err != nil {
		t.Fatal(err)
	}
	if startProgram(t, data); t.Failed() {
		t.Error("what was refused has changed something")
	}
}
