package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pilot-api/pilot-api/internal/outside"
)

// endLimit is how long a program may take to see that it cannot go on.
const endLimit = 30 * time.Second

// TestFullDisk: the program says that the disk is full and ends; with room
// made, the next one has all that was acknowledged.
func TestFullDisk(t *testing.T) {
	outside.Slow(t)
	dir := t.TempDir()
	// Room for the two files of 64 MiB that etcd allocates for its log at the start,
	// of which the second is given up again where it does not fit.
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=160m"); err != nil {
		outside.Missing(t, fmt.Sprintf("a small disk: mount a tmpfs (as root): %v", err))
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	data := filepath.Join(dir, "data")

	first := startProgram(t, data)
	var kept []string
	for i := 0; ; i++ {
		name := fmt.Sprintf("rule-%d", i)
		if !first.post(name, 200_000) {
			break
		}
		kept = append(kept, name)
	}
	select {
	case <-first.Ended():
	case <-time.After(endLimit):
		t.Fatalf("still there %s after the disk was full; log:\n%s", endLimit, first.Tail())
	}
	text, err := os.ReadFile(first.log)
	if err != nil {
		t.Fatal(err)
	}
	log := string(text)
	if code := first.ExitCode(); code != exitStore || !strings.Contains(log, "disk of the data folder is full") {
		t.Errorf("exit code %d, want %d, log:\n%s", code, exitStore, log)
	}
	if strings.Contains(log, "goroutine ") {
		t.Errorf("a stack trace for people:\n%s", log)
	}

	if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT, "size=1g"); err != nil {
		t.Fatal(err)
	}
	second := startProgram(t, data)
	for _, name := range kept {
		resp, err := http.Get(second.URL + rulesPath + "/" + name)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			t.Errorf("%s was acknowledged and is gone: %s", name, resp.Status)
		}
	}
	t.Logf("%d objects acknowledged before the disk was full", len(kept))
}
