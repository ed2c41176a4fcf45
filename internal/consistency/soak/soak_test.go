package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/internal/testbed"
)

// program is the server of the working tree.
var program string

func TestMain(m *testing.M) {
	testbed.RunMember()
	os.Exit(runTests(m))
}

func runTests(m *testing.M) int {
	dir, err := os.MkdirTemp("", "soak-program-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if err := testbed.Build(dir, "pilot-api"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	program = filepath.Join(dir, "pilot-api")
	return m.Run()
}

// brief is a run of seconds: each sort of fault about once, and short.
func brief(t *testing.T) settings {
	dir, err := os.MkdirTemp("", "soak-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if !t.Failed() {
			os.RemoveAll(dir)
		}
	})
	return settings{
		Program: program, Dir: dir, Seed: 1, Duration: 8 * time.Second, Pace: 0.2,
		Clients: 8, Watchers: 4, Out: t.Output(),
	}
}

func TestExternal(t *testing.T) {
	outside.Slow(t)
	result, err := run(t.Context(), brief(t), openExternal)
	judge(t, result, err)
}

func TestEmbedded(t *testing.T) {
	outside.Slow(t)
	result, err := run(t.Context(), brief(t), openEmbedded)
	judge(t, result, err)
}

// Proxies connect, refuse, hold back and leave. What clients are told about them is so.
func TestProxies(t *testing.T) {
	outside.Slow(t)
	result, err := runProxies(t.Context(), brief(t))
	judge(t, result, err)
}

// Many watchers come back to a killed server with much to catch up. How fast is
// not for a test to say.
func TestResumes(t *testing.T) {
	outside.Slow(t)
	result, err := storm{
		rounds: 2, watchers: 30, behind: 1000, size: 10,
		stall: time.Minute, memory: 1 << 30, roundTime: time.Minute,
	}.run(t.Context(), brief(t))
	judge(t, result, err)
}

// Many watchers come back at once, and others that read nothing and hang up.
func TestReconnects(t *testing.T) {
	outside.Slow(t)
	result, err := storm{
		rounds: 1, watchers: 200, behind: 50, unread: 100, size: 8 << 10,
		stall: time.Minute, memory: 1 << 30, roundTime: time.Minute,
	}.run(t.Context(), brief(t))
	judge(t, result, err)
}

func judge(t *testing.T, result report, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Log(result)
	if len(result.violations) > 0 {
		t.Error("clients were told what the contract does not allow")
	}
	if result.operations == 0 || result.faults == 0 || result.events == 0 {
		t.Error("nothing happened")
	}
}
