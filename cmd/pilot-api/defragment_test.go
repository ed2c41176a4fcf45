package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestLogIsDamaged: somebody must look at the folder before another start.
func TestLogIsDamaged(t *testing.T) {
	data := t.TempDir()
	p := startProgram(t, data)
	p.Kill()
	logs, err := filepath.Glob(filepath.Join(data, "member", "wal", "*.wal"))
	if err != nil || len(logs) == 0 {
		t.Fatalf("%v, %v", logs, err)
	}
	f, err := os.OpenFile(logs[0], os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt([]byte(strings.Repeat("garbage ", 24)), 64); err != nil {
		t.Fatal(err)
	}
	text := command(t, exitStore, "--data-dir", data, "--listen", "127.0.0.1:0")
	if !strings.Contains(text, data) || !strings.Contains(text, "restore a snapshot") {
		t.Errorf("it says %q", text)
	}
}

// TestDefragment: of a running server and of a stopped one, whose file gets no
// longer; what is stored stays.
func TestDefragment(t *testing.T) {
	data := t.TempDir()
	file := filepath.Join(data, "member", "snap", "db")
	sizes := func(text string) (is, was int64) {
		t.Helper()
		if _, err := fmt.Sscanf(text, "the database file has %d bytes, and had %d", &is, &was); err != nil || is > was {
			t.Fatalf("%v in %q", err, text)
		}
		return is, was
	}
	p := startProgram(t, data)
	if !p.post("kept", 10) {
		t.Fatal("not created")
	}
	is, _ := sizes(command(t, exitDone, "defragment", "--data-dir", data))
	if found, err := os.Stat(file); err != nil || found.Size() < is {
		t.Errorf("%d bytes are told, %v", is, err)
	}
	if _, metrics := p.answer(t, "/metrics"); !strings.Contains(metrics, "pilot_store_defragmentations_total 1\n") {
		t.Error("it is not counted")
	}
	if code, text := p.answer(t, rulesPath+"/kept"); code != 200 {
		t.Errorf("%d: %s", code, text)
	}
	p.Kill()
	sizes(command(t, exitDone, "defragment", "--data-dir", data))
	if code, text := startProgram(t, data).answer(t, rulesPath+"/kept"); code != 200 {
		t.Errorf("after a start: %d: %s", code, text)
	}
	if text := command(t, exitFailed, "defragment", "--data-dir", t.TempDir()); !strings.Contains(text, "there is no data") {
		t.Errorf("of an empty folder: %q", text)
	}
}
