package overload

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/pilot-api/pilot-api/internal/outside"
)

// startWithFiles is a pilot-api that may have so many files open.
func startWithFiles(t *testing.T, files int) program {
	t.Helper()
	if err := build(); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	script := filepath.Join(dir, "limited")
	text := fmt.Sprintf("#!/bin/sh\nulimit -n %d && exec '%s' \"$@\"\n", files, executable())
	if err := os.WriteFile(script, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	return startAs(t, script, "--data-dir", filepath.Join(dir, "data"))
}

// TestIdleWatchesLeaveRoom: a client that has as many watches as it can get, and as many
// silent connections, keeps nobody out of a server that may open few files.
func TestIdleWatchesLeaveRoom(t *testing.T) {
	outside.Slow(t)
	const files, tried = 1024, 1100
	var own syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &own); err != nil || own.Cur < 2*tried {
		outside.Missing(t, "enough files for the clients: ulimit -n")
	}
	p := startWithFiles(t, files)
	p.post(t, http.StatusCreated, service)
	honest := p.attach(t)

	running, refused := 0, 0
	for range tried {
		// Each answer that is not read to its end has a connection of its own.
		resp, err := http.Get(p.URL + entries + "?watch=true")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { resp.Body.Close() })
		switch resp.StatusCode {
		case http.StatusOK:
			running++
		case http.StatusTooManyRequests:
			refused++
		default:
			t.Fatalf("a watch was answered %s", resp.Status)
		}
	}
	t.Logf("%d watches run, %d were refused, the process has %d files open", running, refused, p.Files())
	if running == 0 || refused == 0 {
		t.Errorf("%d watches run and %d were refused: the bound was not reached", running, refused)
	}
	poll := []byte(`{"node":{"id":"` + node + `"}}`)
	for _, r := range []struct {
		method, path string
		body         []byte
	}{
		{"GET", "/healthz", nil},
		{"GET", "/readyz", nil},
		{"GET", "/metrics", nil},
		{"GET", entries + "/web", nil},
		{"GET", entries, nil},
		{"POST", "/v3/discovery:clusters", poll},
		{"PUT", entries + "/web", []byte(service)},
	} {
		if code, err := p.send(r.method, r.path, r.body, "Connection: close"); err != nil || code != http.StatusOK {
			t.Errorf("%s %s beside the watches: %d, %v", r.method, r.path, code, err)
		}
	}
	if err := honest.await("web"); err != nil {
		t.Errorf("the proxy beside them: %v", err)
	}
}
