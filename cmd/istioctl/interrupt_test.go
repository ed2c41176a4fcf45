package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/cli"
	"github.com/pilot-api/pilot-api/cmd/istioctl/root"
)

// errSignal is what ends the context of a program that gets a signal.
type errSignal struct{}

func (errSignal) Error() string        { return "interrupt signal received" }
func (errSignal) Is(target error) bool { return target == context.Canceled }

// silent is an input that never has anything. It tells when somebody reads it.
type silent struct{ read chan<- struct{} }

func (s silent) Read([]byte) (int, error) {
	s.read <- struct{}{}
	select {}
}

// TestInterruptedInput interrupts commands that read what nobody writes: standard input, a
// FIFO, a URL.
func TestInterruptedInput(t *testing.T) {
	asked := make(chan struct{}, 100)
	hanging := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		<-r.Context().Done()
	}))
	t.Cleanup(hanging.Close)
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, verb := range []string{"validate -f", "apply -f", "create -f", "delete -f", "diff -f", "analyze -f", "patch rr a --patch-file", "analyze -f - --mesh-config"} {
		for _, input := range []string{"-", fifo, hanging.URL} {
			if input == hanging.URL && !strings.HasSuffix(verb, " -f") || verb == "analyze -f - --mesh-config" && input == "-" {
				continue
			}
			args := append(strings.Fields(verb), input)
			ctx, interrupt := context.WithCancelCause(t.Context())
			begun := make(chan struct{}, 100)
			var out, errs bytes.Buffer
			c := &cli.Program{Stdin: silent{begun}, Stdout: &out, Stderr: &errs, Getenv: func(string) string { return "" }}
			go func() {
				if input != fifo { // Nobody can see whether a FIFO is being opened.
					select {
					case <-begun:
					case <-asked:
					}
				}
				interrupt(errSignal{})
			}()
			if code := root.Run(ctx, c, args); code != cli.ExitInterrupted || !strings.HasSuffix(errs.String(), ": interrupted\n") || out.Len() > 0 {
				t.Errorf("%q: exit %d: %q %q", args, code, &out, &errs)
			}
			errs.Reset()
			if code := root.Run(t.Context(), c, append(args, "--timeout", "10ms")); code == cli.ExitDone || !strings.HasSuffix(errs.String(), ": not done after --timeout 10ms\n") {
				t.Errorf("%q with a timeout: exit %d: %q", args, code, &errs)
			}
			interrupt(nil)
		}
	}
}

// broken is an input that fails.
type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errors.New("torn") }

// TestStandardInputHasOneName in all messages.
func TestStandardInputHasOneName(t *testing.T) {
	for line, input := range map[string]io.Reader{
		"validate -f -": strings.NewReader(""), "apply -f -": strings.NewReader(""), "analyze -f -": strings.NewReader(""),
		"create -f -": broken{}, "patch rr a --patch-file -": broken{},
	} {
		var errs bytes.Buffer
		c := &cli.Program{Stdin: input, Stdout: io.Discard, Stderr: &errs, Getenv: func(string) string { return "" }}
		want := "error: no objects in stdin\n"
		if input == (broken{}) {
			want = "error: stdin: torn\n"
		}
		if code := root.Run(t.Context(), c, strings.Fields(line)); code == cli.ExitDone || errs.String() != want {
			t.Errorf("%s: exit %d %q, want %q", line, code, &errs, want)
		}
	}
}
