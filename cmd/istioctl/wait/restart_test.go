package wait_test

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/cli"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/clitest"
	"github.com/pilot-api/pilot-api/cmd/istioctl/root"
	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/internal/simulated"
)

// TestWaitOverRestart: a wait for a proxy that is slow does not end well because the
// server was started again and the proxy is not back yet.
func TestWaitOverRestart(t *testing.T) {
	outside.Slow(t)
	first, publisher := clitest.Followed(t.Cleanup)
	second, _ := clitest.Followed(t.Cleanup) // The same objects, and nobody connected yet.
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	handler, waits, looks := first.Handler(), false, 0 // One request after the other.
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if waits {
			looks++
		}
		switch {
		case looks > 4:
			handler = second.Handler()
		case looks > 2:
			panic(http.ErrAbortHandler)
		}
		handler.ServeHTTP(w, r)
		if looks == 8 {
			cancel(errors.New("not done after --timeout 8s"))
		}
	}))
	t.Cleanup(api.Close)
	run := func(input string, args ...string) (int, string) {
		var out bytes.Buffer
		c := &cli.Program{Stdin: strings.NewReader(input), Stdout: &out, Stderr: &out, Getenv: clitest.Env(api.URL)}
		return root.Run(ctx, c, args), out.String()
	}
	do := func(input string, args ...string) {
		if code, out := run(input, args...); code != cli.ExitDone {
			t.Fatal(out)
		}
	}
	both := func(input string) {
		for _, h := range []http.Handler{second.Handler(), first.Handler()} {
			handler = h
			do(input, "apply", "-f", "-")
			do("", "problems") // And so it is published.
		}
	}
	both(simulated.Reviews)
	both(clitest.Rule("split", "v1"))
	p, err := simulated.Connect(publisher, simulated.Node(0))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Leave)
	do("", "wait", "rr", "split")
	p.Hold()
	both(clitest.Rule("split", "v2"))
	waits = true
	code, out := run("", "wait", "rr", "split")
	if want := "routerule/split is not programmed"; code == cli.ExitDone || !strings.Contains(out, want) {
		t.Errorf("exit %d, no %q in: %s", code, want, out)
	}
	if want := "of those that were connected before, 1 may still come back"; !strings.Contains(out, want) {
		t.Errorf("no %q in: %s", want, out)
	}
}
