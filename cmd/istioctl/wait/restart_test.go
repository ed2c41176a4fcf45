package wait_test

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/cli"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/clitest"
	"github.com/pilot-api/pilot-api/cmd/istioctl/root"
	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/internal/simulated"
	"github.com/pilot-api/pilot-api/store/memory"
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

// TestWaitRightAfterARestart: proxies that were connected before a start are waited for,
// however soon the question comes, and are named.
func TestWaitRightAfterARestart(t *testing.T) {
	outside.Slow(t)
	mem := memory.New()
	first, before := clitest.FollowedOver(mem, nil, t.Cleanup)
	api := httptest.NewServer(first.Handler())
	t.Cleanup(api.Close)
	clitest.Apply(t, api.URL, simulated.Reviews)
	clitest.Apply(t, api.URL, clitest.Rule("split", "v1"))
	clitest.Run(t, api.URL, "", "problems") // And so it is published.
	connect := func(p *discovery.Publisher, n int) *simulated.Proxy {
		t.Helper()
		one, err := simulated.Connect(p, simulated.Node(n))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(one.Leave)
		return one
	}
	for n := range 3 {
		connect(before, n)
	}
	if out, errs, code := clitest.Run(t, api.URL, "", "wait", "rr", "split"); code != cli.ExitDone || !strings.Contains(out, "3 of 3 proxies run it") {
		t.Fatalf("exit %d: %s%s", code, out, errs)
	}

	second, after := clitest.FollowedOver(mem, before.Roster(), t.Cleanup)
	again := httptest.NewServer(second.Handler())
	t.Cleanup(again.Close)
	for back := range 3 {
		if back > 0 {
			connect(after, back-1)
		}
		out, errs, code := clitest.Run(t, again.URL, "", "wait", "rr", "split", "--timeout", "1s")
		if code != cli.ExitFailed {
			t.Errorf("%d are back, exit %d: %s", back, code, out)
		}
		if missing := simulated.Node(2) + " is disconnected, was seen last at "; !strings.Contains(errs, missing) {
			t.Errorf("%d are back, no %q in: %s", back, missing, errs)
		}
	}
	out, _, _ := clitest.Run(t, again.URL, "", "proxy-status")
	if !regexp.MustCompile(`p-002\S* +sidecar +delta +- +DISCONNECTED `).MatchString(out) || strings.Count(out, "SYNCED") == 0 {
		t.Errorf("proxy-status: %s", out)
	}
	connect(after, 2)
	if out, errs, code := clitest.Run(t, again.URL, "", "wait", "rr", "split"); code != cli.ExitDone || !strings.Contains(out, "3 of 3 proxies run it") {
		t.Errorf("all are back, exit %d: %s%s", code, out, errs)
	}
	if out, _, _ := clitest.Run(t, again.URL, "", "proxy-status"); strings.Contains(out, "DISCONNECTED") {
		t.Errorf("all are back: %s", out)
	}
}

// withRule returns a server that has published a rule for reviews.
func withRule(t *testing.T) (api *httptest.Server, publisher *discovery.Publisher) {
	t.Helper()
	live, publisher := clitest.Followed(t.Cleanup)
	api = httptest.NewServer(live.Handler())
	t.Cleanup(api.Close)
	clitest.Apply(t, api.URL, simulated.Reviews)
	clitest.Apply(t, api.URL, clitest.Rule("split", "v1"))
	clitest.Run(t, api.URL, "", "problems") // And so it is published.
	return api, publisher
}

// TestALostProxyIsNamed: a proxy whose connection breaks without a word is waited for, and
// stays in proxy-status. One that ends its stream is shown there, and not waited for.
func TestALostProxyIsNamed(t *testing.T) {
	outside.Slow(t)
	api, publisher := withRule(t)
	var fleet []*simulated.Proxy
	for n := range 3 {
		p, err := simulated.Connect(publisher, simulated.Node(n))
		if err != nil {
			t.Fatal(err)
		}
		fleet = append(fleet, p)
	}
	t.Cleanup(fleet[0].Leave)
	clitest.Run(t, api.URL, "", "wait", "rr", "split")
	fleet[1].Leave()
	if out, errs, code := clitest.Run(t, api.URL, "", "wait", "rr", "split"); code != cli.ExitDone || !strings.Contains(out, "2 of 2 proxies run it") {
		t.Errorf("one has left, exit %d: %s%s", code, out, errs)
	}
	fleet[2].Lose()
	_, errs, code := clitest.Run(t, api.URL, "", "wait", "rr", "split", "--timeout", "1s")
	for _, want := range []string{"1 of 2 proxies run it, 1 lost the connection and may come back", simulated.Node(2) + " is disconnected"} {
		if code != cli.ExitFailed || !strings.Contains(errs, want) {
			t.Errorf("one is lost, exit %d, no %q in: %s", code, want, errs)
		}
	}
	if strings.Contains(errs, simulated.Node(1)) {
		t.Errorf("one that has left is waited for: %s", errs)
	}
	out, _, _ := clitest.Run(t, api.URL, "", "proxy-status")
	if strings.Count(out, "DISCONNECTED") != 2 {
		t.Errorf("proxy-status: %s", out)
	}
}

// TestALostProxyCanBeRequired checks that --require-lost waits for a proxy that lost its
// connection, and ends when the proxy is back.
func TestALostProxyCanBeRequired(t *testing.T) {
	outside.Slow(t)
	api, publisher := withRule(t)
	connect := func() *simulated.Proxy {
		p, err := simulated.Connect(publisher, simulated.Node(1))
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	required := func(timeout string) (string, int) {
		out, errs, code := clitest.Run(t, api.URL, "", "wait", "rr", "split", "--require-lost", "--timeout", timeout)
		return out + errs, code
	}
	p := connect()
	if text, code := required("10s"); code != cli.ExitDone {
		t.Fatal(text)
	}
	p.Lose()
	if text, code := required("1s"); code != cli.ExitFailed || !strings.Contains(text, simulated.Node(1)+" is disconnected") {
		t.Errorf("lost, exit %d: %s", code, text)
	}
	t.Cleanup(connect().Leave)
	if text, code := required("10s"); code != cli.ExitDone || !strings.Contains(text, "1 of 1 proxies run it") {
		t.Errorf("back, exit %d: %s", code, text)
	}
	if _, errs, code := clitest.Run(t, api.URL, "", "wait", "rr", "split", "--require-lost", "--for=accepted"); code != cli.ExitUsage {
		t.Errorf("not for proxies, exit %d: %s", code, errs)
	}
}
