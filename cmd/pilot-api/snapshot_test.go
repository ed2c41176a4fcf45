package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/internal/testbed"
)

// command runs one beside the server, and returns what it prints.
func command(t *testing.T, code int, args ...string) string {
	t.Helper()
	var out, errs bytes.Buffer
	if got := Main(t.Context(), args, &out, &errs); got != code {
		t.Fatalf("pilot-api %s: exit code %d, want %d\n%s%s", strings.Join(args, " "), got, code, &out, &errs)
	}
	return out.String() + errs.String()
}

// answer is the code of a GET, and its body.
func (p *program) answer(t *testing.T, path string) (int, string) {
	t.Helper()
	resp, text := p.ask(t, http.MethodGet, path, "")
	return resp.StatusCode, text
}

// revision is that of the list of rules.
func (p *program) revision(t *testing.T) string {
	t.Helper()
	_, text := p.answer(t, rulesPath+"?limit=1")
	var list struct {
		Metadata struct {
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal([]byte(text), &list); err != nil || list.Metadata.ResourceVersion == "" {
		t.Fatalf("%v in %s", err, text)
	}
	return list.Metadata.ResourceVersion
}

// saveIntoPipe copies a snapshot of a pipe into a file.
func saveIntoPipe(t *testing.T, data, file string) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	copied := make(chan error)
	go func() {
		text, err := io.ReadAll(r)
		copied <- errors.Join(err, os.WriteFile(file, text, snapshotMode))
	}()
	var out, errs bytes.Buffer
	code := Main(t.Context(), []string{"snapshot", "save", "--data-dir", data, fmt.Sprintf("/proc/self/fd/%d", w.Fd())}, &out, &errs)
	w.Close()
	if err := <-copied; err != nil || code != exitDone || out.Len() > 0 || !strings.Contains(errs.String(), "sha256") {
		t.Fatalf("exit code %d, %v: %s%s", code, err, &out, &errs)
	}
}

// TestSnapshot: of a running server and of a stopped one; what comes of it has the
// objects, their history and the settings, and tells a client that resumes from the
// lost server's time to list anew.
func TestSnapshot(t *testing.T) {
	outside.Slow(t)
	data, dir := t.TempDir(), t.TempDir()
	p := startProgram(t, data)
	if !p.post("before", 10) {
		t.Fatal("not created")
	}
	then := p.revision(t)
	saved := map[string]string{"running": filepath.Join(dir, "running.db"), "stopped": filepath.Join(dir, "stopped.db"), "pipe": filepath.Join(dir, "pipe.db")}
	saveIntoPipe(t, data, saved["pipe"])
	if text := command(t, exitDone, "snapshot", "save", "--data-dir", data, saved["running"]); !strings.Contains(text, "sha256") {
		t.Errorf("save says %q", text)
	}
	if !p.post("after", 10) {
		t.Fatal("not created")
	}
	future := p.revision(t)
	p.Kill() // It leaves its socket.
	t.Setenv("PILOT_DATA_DIR", data)
	if text := command(t, exitFailed, "snapshot", "save", "--etcd-prefix", "/other", saved["stopped"]); !strings.Contains(text, `have "/pilot-api"`) {
		t.Errorf("of a prefix that has nothing: %s", text)
	}
	command(t, exitDone, "snapshot", "save", saved["stopped"])

	for name, file := range saved {
		info, err := os.Stat(file)
		if err != nil || info.Mode() != snapshotMode {
			t.Errorf("%s: mode %v, %v", name, info.Mode(), err)
		}
		if text := command(t, exitDone, "snapshot", "status", file, "-o", "json"); !strings.Contains(text, `"revision":`) {
			t.Errorf("%s: status says %q", name, text)
		}
		back := t.TempDir()
		command(t, exitDone, "snapshot", "restore", file, "--data-dir", back)
		was, err1 := os.ReadFile(filepath.Join(data, settingsFile))
		is, err2 := os.ReadFile(filepath.Join(back, settingsFile))
		if err1 != nil || err2 != nil || !bytes.Equal(was, is) {
			t.Errorf("%s: settings %q, %v, want %q, %v", name, is, err2, was, err1)
		}
		restored := startProgram(t, back)
		for object, want := range map[string]int{"before": http.StatusOK, "after": map[string]int{"running": http.StatusNotFound, "pipe": http.StatusNotFound, "stopped": http.StatusOK}[name]} {
			if code, _ := restored.answer(t, rulesPath+"/"+object); code != want {
				t.Errorf("%s: %s: %d, want %d", name, object, code, want)
			}
		}
		if _, text := restored.answer(t, rulesPath+"/before/history"); !strings.Contains(text, `"create"`) {
			t.Errorf("%s: history %s", name, text)
		}
		for _, revision := range []string{then, future} {
			code, text := restored.answer(t, rulesPath+"?watch=true&resourceVersion="+revision)
			if code != http.StatusGone && !strings.Contains(text, `"code":410`) {
				t.Errorf("%s: a watch from %s: %d %s", name, revision, code, text)
			}
		}
		if text := command(t, exitFailed, "snapshot", "restore", file, "--data-dir", back); !strings.Contains(text, back) {
			t.Errorf("%s: restore over a server says %q", name, text)
		}
		restored.Kill()
	}
}

func TestSnapshotOfNothing(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if text := command(t, exitFailed, "snapshot", "save", "--data-dir", filepath.Join(dir, "no"), file); !strings.Contains(text, "no data") {
		t.Error(text)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("there is %v", left)
	}
	command(t, exitUsage, "snapshot", "save")
	command(t, exitUsage, "snapshot", "keep", file)
	command(t, exitUsage, "snapshot", "save", "--from", "x", file)
	command(t, exitFailed, "snapshot", "status", file)
}

// TestSnapshotIsPrivate: nobody but who may read the data may connect.
func TestSnapshotIsPrivate(t *testing.T) {
	data := t.TempDir()
	p := startProgram(t, data)
	info, err := os.Stat(filepath.Join(data, socketName))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if code, _ := p.answer(t, snapshotPath); code != http.StatusNotFound {
		t.Errorf("the API answers %d", code)
	}
	if err := p.Stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(data, socketName)); !os.IsNotExist(err) {
		t.Errorf("the socket stays: %v", err)
	}
}

// TestSaveKilled: there is no part of a snapshot under its name.
func TestSaveKilled(t *testing.T) {
	data, dir := t.TempDir(), t.TempDir()
	listener, err := net.Listen("unix", filepath.Join(data, socketName))
	if err != nil {
		t.Fatal(err)
	}
	sent, release := make(chan struct{}), make(chan struct{})
	slow := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(1<<30))
		_, _ = w.Write(make([]byte, 1<<20))
		_ = http.NewResponseController(w).Flush()
		close(sent)
		<-release
	})}
	go func() { _ = slow.Serve(listener) }()
	defer slow.Close()
	defer close(release)
	file := filepath.Join(dir, "snapshot.db")
	save := testbed.NewProcess(t.TempDir(), "save", os.Args[0], "snapshot", "save", "--data-dir", data, file)
	if err := save.Start(); err != nil {
		t.Fatal(err)
	}
	<-sent
	err = save.Until(t.Context(), "some of it on disk", func(ctx context.Context) error {
		parts, err := filepath.Glob(filepath.Join(dir, ".snapshot.db.*"))
		if err == nil && len(parts) == 0 {
			err = fmt.Errorf("nothing in %s", dir)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	save.Kill()
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("there is a file: %v", err)
	}
}
