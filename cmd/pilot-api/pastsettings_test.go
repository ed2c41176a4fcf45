package main

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/pilot-api/pilot-api/mesh"
)

// TestPastSettings: the settings of the start before are known when they were
// others, and whatever stands in their file keeps no server from starting.
func TestPastSettings(t *testing.T) {
	dir := t.TempDir()
	o := &options{dataDir: dir, meshConfig: filepath.Join(dir, "mesh.yaml"), domain: "cluster.local"}
	start := func(settings string) []*mesh.Settings {
		t.Helper()
		if err := os.WriteFile(o.meshConfig, []byte(settings), 0o600); err != nil {
			t.Fatal(err)
		}
		return o.pastSettings(slog.New(slog.DiscardHandler))
	}
	if past := start("connectTimeout: 3s"); len(past) != 0 {
		t.Errorf("past of the first start: %v", past)
	}
	if past := start("connectTimeout: 3s"); len(past) != 0 {
		t.Errorf("past of a start with the same settings: %v", past)
	}
	past := start("connectTimeout: 5s")
	if len(past) != 1 || past[0].ConnectTimeout != 3*time.Second || past[0].Domain != "cluster.local" {
		t.Errorf("past of a start with others: %+v", past)
	}
	if err := os.WriteFile(filepath.Join(dir, lastSettings), []byte("connectTimeout: ["), 0o600); err != nil {
		t.Fatal(err)
	}
	if past := start("connectTimeout: 7s"); len(past) != 0 {
		t.Errorf("past out of a damaged file: %v", past)
	}
	if past := start("connectTimeout: 9s"); len(past) != 1 || past[0].ConnectTimeout != 7*time.Second {
		t.Errorf("past after that: %+v", past)
	}
}
