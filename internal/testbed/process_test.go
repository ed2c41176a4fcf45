package testbed

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestUntil: who waits for a program that has ended is told so at once, with
// what it said; restarted, the program goes on in the same log.
func TestUntil(t *testing.T) {
	p := NewProcess(t.TempDir(), "speaker", "sh", "-c", "echo last words; exit 3")
	for range 2 {
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := p.Until(ctx, "an answer", func(context.Context) error { return errors.New("none yet") })
		if err == nil || ctx.Err() != nil || !strings.Contains(err.Error(), "exit status 3") || !strings.Contains(err.Error(), "last words") {
			t.Errorf("got %v", err)
		}
	}
	if got := p.Tail(); got != "last words\nlast words" {
		t.Errorf("the log is %q", got)
	}
}

// TestPause: a program that is paused has done its last step.
func TestPause(t *testing.T) {
	dir := t.TempDir()
	p := NewProcess(dir, "busy", "sh", "-c", "while echo step; do :; done")
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	defer p.Kill()
	steps := func() int64 {
		info, err := os.Stat(filepath.Join(dir, "busy.log"))
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	for range 20 {
		for begun := steps(); steps() == begun; {
		}
		p.Pause()
		before := steps()
		time.Sleep(time.Millisecond) // What still runs has done more by then.
		if after := steps(); after != before {
			t.Fatalf("it wrote %d bytes while it was paused", after-before)
		}
		p.Resume()
	}
}
