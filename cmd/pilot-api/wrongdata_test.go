package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/internal/testbed"
)

// TestWrongData: a server does not start, ready and with nothing in it, on data that it
// does not find: proxies would be told a mesh without objects.
func TestWrongData(t *testing.T) {
	outside.Slow(t)
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

// TestLogOfAnother: a database and a log that do not belong together, such as a copy
// of the one file from elsewhere, are told as what they are.
func TestLogOfAnother(t *testing.T) {
	folder := func(objects int) string {
		data := t.TempDir()
		p := startProgram(t, data)
		for i := range objects {
			if !p.post(fmt.Sprintf("rule-%d", i), 100) {
				t.Fatal("not created")
			}
		}
		if err := p.Stop(); err != nil {
			t.Fatal(err)
		}
		return data
	}
	refused := func(data string) {
		t.Helper()
		text := command(t, exitStore, "--data-dir", data, "--listen", "127.0.0.1:0")
		if !strings.Contains(text, "do not belong together") {
			t.Errorf("it says %q", text)
		}
	}
	short, long := folder(1), folder(50)
	database := func(data string) string { return filepath.Join(data, "member", "snap", "db") }
	text, err := os.ReadFile(database(long))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(database(short), text, 0o600); err != nil {
		t.Fatal(err)
	}
	refused(short)

	logs, err := filepath.Glob(filepath.Join(long, "member", "wal", "*.wal"))
	if err != nil || len(logs) == 0 {
		t.Fatalf("%v, %v", logs, err)
	}
	startProgram(t, long).Kill() // As it should be.
	if err := os.Truncate(logs[0], 0); err != nil {
		t.Fatal(err)
	}
	refused(long)
}
