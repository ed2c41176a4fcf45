package main

import (
	"flag"
	"io/fs"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pilot-api/pilot-api/internal/outside"
)

var rewrites = flag.Int("rewrites", 100, "how often TestRewrite replaces a large object; 20000 is the long run")

// TestRewrite: an object of 1 MB may be replaced without end. No update is
// refused, and neither memory nor the data folder grows with their number.
func TestRewrite(t *testing.T) {
	outside.Slow(t)
	const size, memory, disk = 1_000_000, 1 << 30, 2 << 30
	dir := t.TempDir()
	p := startProgram(t, dir)
	if !p.post("large", size) {
		t.Fatal("the object was not created")
	}
	bodies := [2]string{largeRule("large", size-1), largeRule("large", size-2)}
	began := time.Now()
	largest := int64(0)
	for i := range *rewrites {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, p.URL+rulesPath+"/large", strings.NewReader(bodies[i%2]))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(req)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("update %d: %v, %v", i, resp, err)
		}
		resp.Body.Close()
		if i%50 == 0 {
			largest = max(largest, folderSize(t, dir))
		}
		if i%1000 == 999 {
			_, peak := p.Memory()
			t.Logf("%d updates in %s, memory %d MiB at most, folder %d MiB at most",
				i+1, time.Since(began).Round(time.Second), peak>>20, largest>>20)
		}
	}
	_, peak := p.Memory()
	if peak == 0 {
		outside.Missing(t, "the memory of a process: /proc")
	}
	if peak > memory || largest > disk {
		t.Errorf("after %d updates: memory %d MiB, folder %d MiB at most", *rewrites, peak>>20, largest>>20)
	}
}

func folderSize(t *testing.T, dir string) (bytes int64) {
	t.Helper()
	err := filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return nil // Files come and go.
		}
		if info, err := entry.Info(); err == nil {
			bytes += info.Size()
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return bytes
}
