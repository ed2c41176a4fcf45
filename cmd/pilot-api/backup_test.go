package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/internal/testbed"
	"github.com/pilot-api/pilot-api/store/etcd/etcdtest"
)

// typed is a line that a person types.
var typed = regexp.MustCompile(`(?m)^\$ (.*)$`)

// TestBackupPage runs the commands of docs/backup.md in order, the last ones with
// the server stopped.
func TestBackupPage(t *testing.T) {
	outside.Slow(t)
	page, err := os.ReadFile("../../docs/backup.md")
	if err != nil {
		t.Fatal(err)
	}
	bin, dir, data := t.TempDir(), t.TempDir(), t.TempDir()
	if err := testbed.Build(bin, "istioctl"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(os.Args[0], filepath.Join(bin, "pilot-api")); err != nil {
		t.Fatal(err)
	}
	p := startProgram(t, data)
	if !p.post("a", 10) {
		t.Fatal("not created")
	}
	env := append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "DATA="+data,
		"ETCD=http://"+linkTo(t, etcdtest.Start(t)).Addr(), "ISTIOCTL_SERVER="+p.URL)
	lines := typed.FindAllStringSubmatch(string(page), -1)
	if len(lines) < 7 {
		t.Errorf("only %d lines in the page", len(lines))
	}
	for _, line := range lines {
		if strings.Contains(line[1], "migrate") {
			if err := p.Stop(); err != nil {
				t.Fatal(err)
			}
		}
		cmd := exec.CommandContext(t.Context(), "sh", "-c", line[1])
		cmd.Dir, cmd.Env = dir, env
		if text, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", line[1], err, text)
		}
	}
}
