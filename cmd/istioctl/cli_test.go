package main

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/cli"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/clitest"
	"github.com/pilot-api/pilot-api/cmd/istioctl/root"
)

// fullDisk takes nothing.
type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestOutputThatCannotBeWritten(t *testing.T) {
	server := clitest.Start(t)
	for _, args := range [][]string{{"create", "-f", "-"}, {"get", "rr"}, {"version"}} {
		var errs bytes.Buffer
		c := &cli.Program{Stdin: strings.NewReader(clitest.Rule("a", "v1")), Stdout: fullDisk{}, Stderr: &errs, Getenv: clitest.Env(server.URL())}
		if code := root.Run(t.Context(), c, args); code != cli.ExitFailed || !strings.Contains(errs.String(), "no space left") {
			t.Errorf("%v: exit %d: %s", args, code, &errs)
		}
	}
}

func TestInterrupted(t *testing.T) {
	server := clitest.Start(t)
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	for _, args := range [][]string{{"create", "-f", "-"}, {"get", "rr"}} {
		var errs bytes.Buffer
		c := &cli.Program{Stdin: strings.NewReader(clitest.Rule("a", "v1")), Stdout: &errs, Stderr: &errs, Getenv: clitest.Env(server.URL())}
		if code := root.Run(ctx, c, args); code != cli.ExitInterrupted || !strings.Contains(errs.String(), "interrupted") {
			t.Errorf("%v: exit %d: %s", args, code, &errs)
		}
	}
}
