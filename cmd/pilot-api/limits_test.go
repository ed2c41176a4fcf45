package main

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"testing"

	"github.com/pilot-api/pilot-api/mesh"
)

func TestMemoryLimit(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	t.Cleanup(func() { debug.SetMemoryLimit(before) })
	for _, c := range []struct {
		flag, environment string
		start, want       int64
	}{
		{"2Gi", "", 1 << 40, 2 << 30},
		{"512M", "1GiB", 1 << 30, 512_000_000},
		{"", "1GiB", 1 << 30, 1 << 30},
		{"off", "1GiB", 1 << 30, 1<<63 - 1},
	} {
		t.Setenv("GOMEMLIMIT", c.environment)
		debug.SetMemoryLimit(c.start)
		l := limits{memory: c.flag}
		if err := l.validate(); err != nil {
			t.Fatal(err)
		}
		l.apply(slog.New(slog.DiscardHandler))
		if got := debug.SetMemoryLimit(-1); got != c.want {
			t.Errorf("--memory-limit %q with GOMEMLIMIT %q: got %d, want %d", c.flag, c.environment, got, c.want)
		}
	}
}

func TestBadLimits(t *testing.T) {
	for _, l := range []limits{
		{memory: "much"}, {memory: "1Mi"}, {memory: "-1Gi"}, {maxConnections: -1}, {hostNames: []string{"a.example:80"}}, {hostNames: []string{""}},
	} {
		if err := l.validate(); !errors.Is(err, errUsage) {
			t.Errorf("%+v: %v", l, err)
		}
	}
}

func TestBudgetWithinMemory(t *testing.T) {
	for memory, want := range map[int64]mesh.Budget{
		1<<63 - 1: mesh.DefaultBudget,
		32 << 30:  mesh.DefaultBudget,
		4 << 30:   {Object: 32_768, Mesh: 131_072},
		512 << 20: {Object: 4096, Mesh: 16_384},
		64 << 20:  {Object: 512, Mesh: 2048},
	} {
		if got := budgetWithin(memory); got != want {
			t.Errorf("with %d bytes: got %+v, want %+v", memory, got, want)
		}
	}
}

func TestMemoryOfTheMachine(t *testing.T) {
	file := func(text string) string {
		path := filepath.Join(t.TempDir(), "meminfo")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const none = 1<<63 - 1
	has := file("MemTotal:        2097152 kB\nMemFree:          901120 kB\n")
	for _, c := range []struct {
		limit   int64
		meminfo string
		want    int64
	}{
		{512 << 20, has, 512 << 20},
		{none, has, 2 << 30 / 10 * 9},
		{none, file("MemFree: 1 kB\n"), none},
		{none, filepath.Join(t.TempDir(), "none"), none},
	} {
		if got := memoryOr(c.limit, c.meminfo); got != c.want {
			t.Errorf("with a limit of %d: got %d, want %d", c.limit, got, c.want)
		}
	}
}

func TestCgroupMemory(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, c := range []struct {
		files []string
		want  int64
	}{
		{[]string{file("limited", "1073741824\n"), file("other", "5\n")}, 1 << 30},
		{[]string{file("max", "max\n")}, 0},
		{[]string{filepath.Join(dir, "none"), file("v1", "536870912")}, 512 << 20},
		{[]string{file("unlimited", "9223372036854771712\n")}, 0},
		{nil, 0},
	} {
		if got := cgroupMemory(c.files...); got != c.want {
			t.Errorf("%v: got %d, want %d", c.files, got, c.want)
		}
	}
}
