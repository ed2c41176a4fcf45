package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/mesh"
)

// restarts is a server that starts again and again over one data folder.
type restarts struct {
	*testing.T
	options
}

func newRestarts(t *testing.T) restarts {
	dir := t.TempDir()
	return restarts{t, options{dataDir: dir, meshConfig: filepath.Join(dir, "mesh.yaml"), domain: "cluster.local"}}
}

// start is the memory after a start with some settings.
func (r *restarts) start(settings string) *settingsMemory {
	r.Helper()
	if err := os.WriteFile(r.meshConfig, []byte(settings), 0o600); err != nil {
		r.Fatal(err)
	}
	return r.rememberSettings(nil, slog.New(slog.DiscardHandler))
}

// wantPast holds the past of a start, as its connect timeouts, newest first.
func (r *restarts) wantPast(settings string, want ...time.Duration) *settingsMemory {
	r.Helper()
	m := r.start(settings)
	var got []time.Duration
	for _, past := range m.past() {
		got = append(got, past.ConnectTimeout)
	}
	if !slices.Equal(got, want) {
		r.Errorf("past of a start with %s: %v, want %v", settings, got, want)
	}
	return m
}

const second = time.Second

// TestPastSettings: whatever proxies may still hold is known, also after several
// starts with other settings one after the other.
func TestPastSettings(t *testing.T) {
	r := newRestarts(t)
	r.wantPast("connectTimeout: 3s")
	r.wantPast("connectTimeout: 3s")
	r.wantPast("connectTimeout: 5s", 3*second)
	r.wantPast("connectTimeout: 5s", 3*second)
	r.wantPast("connectTimeout: 7s", 5*second, 3*second)
	r.wantPast("connectTimeout: 3s", 7*second, 5*second)
	for range maxServed {
		r.start("connectTimeout: 8s")
		r.start("connectTimeout: 9s")
	}
	r.wantPast("connectTimeout: 3s", 9*second, 8*second, 7*second, 5*second)
	for _, more := range []string{"11s", "12s", "13s", "14s", "15s"} {
		r.start("connectTimeout: " + more)
	}
	r.wantPast("connectTimeout: 3s", 15*second, 14*second, 13*second, 12*second, 11*second, 9*second, 8*second)
}

// TestPastDomain: what proxies were told goes by the domain too.
func TestPastDomain(t *testing.T) {
	r := newRestarts(t)
	r.start("connectTimeout: 3s")
	r.domain = "example.com"
	if past := r.start("connectTimeout: 3s").past(); len(past) != 1 || past[0].Domain != "cluster.local" {
		t.Errorf("past of a start in another domain: %+v", past)
	}
}

// TestPastIsOver: what was before a start is forgotten when the server has served
// for long enough, and not before.
func TestPastIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRestarts(t)
		r.start("connectTimeout: 3s")
		m := r.start("connectTimeout: 5s")
		var serving atomic.Bool
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- m.run(ctx, serving.Load) }()
		time.Sleep(2 * discovery.PastFor) // etcd is not there yet.
		synctest.Wait()
		serving.Store(true)
		time.Sleep(discovery.PastFor - second)
		r.wantPast("connectTimeout: 5s", 3*second)
		time.Sleep(3 * second)
		synctest.Wait()
		r.wantPast("connectTimeout: 5s")
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

// TestPastOutOfAnyFile: a file of a version before this one is read, and one that
// is damaged keeps no server from starting.
func TestPastOutOfAnyFile(t *testing.T) {
	r := newRestarts(t)
	for text, want := range map[string][]time.Duration{
		"connectTimeout: 4s":                  {4 * second},
		`{"connectTimeout": "4s"}`:            {4 * second},
		"":                                    {mesh.DefaultSettings().ConnectTimeout},
		"connectTimeout: [":                   nil,
		`[{"meshConfig": "somethingElse: 1"}`: nil,
	} {
		if err := os.WriteFile(filepath.Join(r.dataDir, settingsFile), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		r.wantPast("connectTimeout: 7s", want...)
		if files, err := filepath.Glob(filepath.Join(r.dataDir, settingsFile+"*")); err != nil || len(files) != 1 {
			t.Errorf("files left: %q, %v", files, err)
		}
	}
}

// TestSettingsAreReplaced: a write that does not succeed leaves what was there.
func TestSettingsAreReplaced(t *testing.T) {
	r := newRestarts(t)
	r.start("connectTimeout: 3s")
	file := filepath.Join(r.dataDir, settingsFile)
	before, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	held, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	r.start("connectTimeout: 5s")
	after, err := os.Stat(file)
	if err != nil || os.SameFile(before, after) {
		t.Errorf("written in place, %v", err)
	}
}
