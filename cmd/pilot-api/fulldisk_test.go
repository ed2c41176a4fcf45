package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pilot-api/pilot-api/internal/outside"
)

// asProgram makes the test binary the program itself: what a process does when
// it ends can only be seen from outside.
const asProgram = "PILOT_TEST_RUN_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) == "" {
		os.Exit(m.Run())
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	code := Main(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// program is a running pilot-api of its own process.
type program struct {
	cmd  *exec.Cmd
	addr string
	log  *bytes.Buffer
}

func startProgram(t *testing.T, dir string, flags ...string) *program {
	t.Helper()
	return startProgramAs(t, os.Args[:1], dir, flags...)
}

// startProgramAs takes the words before the flags.
func startProgramAs(t *testing.T, command []string, dir string, flags ...string) *program {
	t.Helper()
	p := &program{addr: freeAddress(t), log: new(bytes.Buffer)}
	args := slices.Concat(command, []string{"--listen", p.addr, "--data-dir", dir}, flags)
	p.cmd = exec.CommandContext(t.Context(), args[0], args[1:]...)
	p.cmd.Env = append(os.Environ(), asProgram+"=1")
	p.cmd.Stderr = p.log
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
	})
	waitReady(t, p.addr)
	return p
}

// post creates a rule of some size and reports whether that was acknowledged.
func (p *program) post(name string, size int) bool {
	resp, err := http.Post("http://"+p.addr+rulesPath, "application/json", strings.NewReader(largeRule(name, size)))
	if err != nil {
		return false
	}
	resp.Body.Close()
	return resp.StatusCode == http.StatusCreated
}

const rulesPath = "/apis/config.istio.io/v1alpha2/namespaces/default/routerules"

func largeRule(name string, size int) string {
	return fmt.Sprintf(`{"apiVersion":"config.istio.io/v1alpha2","kind":"RouteRule","metadata":{"name":%q,"namespace":"default"},`+
		`"spec":{"destination":{"name":"reviews"},"appendHeaders":{"x-fill":%q},"route":[{"labels":{"version":"v1"}}]}}`,
		name, strings.Repeat("x", size))
}

// endLimit is how long a program may take to see that it cannot go on.
const endLimit = 30 * time.Second

// TestFullDisk: the program says that the disk is full and ends; with room
// made, the next one has all that was acknowledged.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=100m"); err != nil {
		outside.Missing(t, fmt.Sprintf("a small disk: mount a tmpfs (as root): %v", err))
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	data := filepath.Join(dir, "data")

	first := startProgram(t, data)
	ended := make(chan error, 1)
	go func() { ended <- first.cmd.Wait() }()
	var kept []string
	for i := 0; ; i++ {
		name := fmt.Sprintf("rule-%d", i)
		if !first.post(name, 200_000) {
			break
		}
		kept = append(kept, name)
	}
	select {
	case <-ended:
	case <-time.After(endLimit):
		t.Fatalf("still there %s after the disk was full; log:\n%s", endLimit, first.log)
	}
	log := first.log.String()
	if code := first.cmd.ProcessState.ExitCode(); code != exitStore || !strings.Contains(log, "disk of the data folder is full") {
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
		resp, err := http.Get("http://" + second.addr + rulesPath + "/" + name)
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
