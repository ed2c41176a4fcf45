package yardstick_test

import (
	"bufio"
	"context"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pilot-api/pilot-api/internal/yardstick"
)

// settle is how long nobody asks anything before it is looked at what the server
// takes: it has given back what it used, and cut histories, by then.
const settle = 10 * time.Second

// BenchmarkRest is what docs/operations.md has of sizes: what the server takes at
// rest, empty, with objects, with watches to which nothing happens, and with
// histories that are full.
func BenchmarkRest(b *testing.B) {
	dir := b.TempDir()
	build(b, dir)
	ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
	defer cancel()
	data := filepath.Join(dir, "data")
	s := &sized{B: b, api: startOurs(ctx, b, dir, "sizing", "--data-dir", data), data: data}
	for range b.N {
		b.ReportMetric(0, "ns/op")
		s.rest("empty", 0)
		const idle = 30 * time.Second // The system counts time in hundredths of a second.
		worked := s.program.CPU()
		time.Sleep(idle)
		b.ReportMetric(100*(s.program.CPU()-worked).Seconds()/idle.Seconds(), "%-of-a-core")

		const few, many, full, updates = 1_000, 9_000, 200, 12
		b.ReportMetric(float64(s.program.Files()), "files-empty")
		s.must(s.fill("few", few))
		s.rest("1000-objects", few)
		s.must(s.fill("many", many))
		s.rest("9000-more-objects", many)

		const watchers = 5_000 // The server takes so many with 20,000 files open.
		before := s.program.Files()
		_, _, end, err := s.watch("idle", watchers)
		s.must(err)
		s.rest("5000-watches", watchers)
		b.ReportMetric(float64(s.program.Files()-before)/watchers, "files/watch")
		end()
		s.must(s.updateAll("few", full, updates))
		s.rest("200-full-histories", full)
	}
}

// sized is a server, and what it took when that was asked last.
type sized struct {
	*testing.B
	*api
	data         string
	memory, live int64
}

func (s *sized) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// rest waits until the server rests, and tells what it takes more than before, in
// all or for each of n.
func (s *sized) rest(what string, n int64) {
	time.Sleep(settle)
	memory, _ := s.program.Memory()
	live := s.metric("pilot_store_live_bytes")
	unit := "/" + what
	s.ReportMetric(float64(memory-s.memory)/float64(max(n, 1)), "B"+unit)
	s.ReportMetric(float64(live-s.live)/float64(max(n, 1)), "B-stored"+unit)
	s.ReportMetric(float64(s.metric("pilot_store_file_bytes"))/(1<<20), "MiB-database"+unit)
	s.ReportMetric(float64(size(s.data, ".wal"))/(1<<20), "MiB-log"+unit)
	s.memory, s.live = memory, live
}

// updateAll changes each object so many times.
func (s *sized) updateAll(space string, n, times int) error {
	const clients = 4
	_, err := s.load(clients, 10*time.Minute, func(i int, c *yardstick.Conn) (yardstick.Step, error) {
		return func() error {
			if i >= n*times {
				return io.EOF
			}
			name := nameOf(i % n)
			_, err := c.Do("PUT", s.object(space, name), yardstick.Rule(space, name, n+i/n))
			i += clients
			return err
		}, nil
	})
	return err
}

func (s *sized) metric(name string) int64 {
	resp, err := http.Get("http://" + s.address + "/metrics")
	s.must(err)
	defer resp.Body.Close()
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		if value, ok := strings.CutPrefix(lines.Text(), name+" "); ok {
			n, err := strconv.ParseFloat(value, 64)
			s.must(err)
			return int64(n)
		}
	}
	s.Fatalf("no metric %s", name)
	return 0
}

// size is how many bytes the files of a kind take.
func size(dir, kind string) (total int64) {
	_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, kind) {
			if info, err := os.Stat(path); err == nil {
				total += info.Size()
			}
		}
		return nil
	})
	return total
}
