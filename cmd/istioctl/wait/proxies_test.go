package wait_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/cli"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/clitest"
	"github.com/pilot-api/pilot-api/cmd/istioctl/root"
	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/internal/simulated"
)

// TestApplyWaitRunsOutOfTime: when the time of the whole command is over, object and
// proxies are named as they are by a wait.
func TestApplyWaitRunsOutOfTime(t *testing.T) {
	live, publisher := clitest.Followed(t.Cleanup)
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	var holds atomic.Bool
	looks := 0 // One after the other.
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		live.Handler().ServeHTTP(w, r)
		if holds.Load() && r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/split") {
			if looks++; looks == 4 { // Apply looks too.
				cancel(errors.New("not done after --timeout 8s"))
			}
		}
	}))
	t.Cleanup(api.Close)
	run := func(input string, args ...string) string {
		var out bytes.Buffer
		c := &cli.Program{Stdin: strings.NewReader(input), Stdout: &out, Stderr: &out, Getenv: clitest.Env(api.URL)}
		root.Run(ctx, c, args)
		return out.String()
	}
	run(simulated.Reviews, "apply", "-f", "-")
	run("", "problems") // And so it is published.
	p, err := simulated.Connect(publisher, simulated.Node(1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Leave)
	p.Hold()
	holds.Store(true)
	out := run(clitest.Rule("split", "v1"), "apply", "--wait", "-f", "-")
	for _, want := range []string{"routerule/split is not programmed", p.Node} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in: %s", want, out)
		}
	}
}

// TestWaitForManyProxies: of 200 some are slow, some leave while they are waited for,
// and at last one refuses.
func TestWaitForManyProxies(t *testing.T) {
	outside.Slow(t)
	live, publisher := clitest.Followed(t.Cleanup)
	api := httptest.NewServer(live.Handler())
	t.Cleanup(api.Close)
	run := func(input string, args ...string) (int, string) {
		var out bytes.Buffer
		c := &cli.Program{Stdin: strings.NewReader(input), Stdout: &out, Stderr: &out, Getenv: clitest.Env(api.URL)}
		return root.Run(t.Context(), c, args), out.String()
	}
	must := func(input string, args ...string) string {
		t.Helper()
		code, out := run(input, args...)
		if code != cli.ExitDone {
			t.Fatalf("%v: exit %d: %s", args, code, out)
		}
		return out
	}
	must(simulated.Reviews, "apply", "-f", "-")
	must("", "problems") // And so it is published.
	fleet := make([]*simulated.Proxy, 200)
	for i := range fleet {
		p, err := simulated.Connect(publisher, simulated.Node(i))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Leave)
		fleet[i] = p
	}
	split := func(weight int) string {
		return fmt.Sprintf("apiVersion: config.istio.io/v1alpha2\nkind: RouteRule\nmetadata: {name: split}\nspec:\n  destination: {name: reviews}\n"+
			"  route:\n  - {labels: {version: v1}, weight: %d}\n  - {labels: {version: v2}, weight: %d}\n", weight, 100-weight)
	}
	if out := must(split(90), "apply", "--wait", "-f", "-"); !strings.Contains(out, "200 of 200 proxies run it") {
		t.Errorf("all at hand: %s", out)
	}

	slow, leaving := fleet[:5], fleet[5:10]
	for _, p := range fleet[:10] {
		p.Hold()
	}
	must(split(80), "apply", "-f", "-")
	for running := ""; running != "190"; { // As soon as they can.
		running = strings.TrimSpace(must("", "get", "rr", "split", "-o", "jsonpath={.status.programmed.running}"))
	}
	code, out := run("", "wait", "rr", "split", "--timeout", "5s")
	if code != cli.ExitFailed || !strings.Contains(out, "190 of 200") {
		t.Errorf("exit %d: %s", code, out)
	}
	for _, p := range fleet[:10] {
		if !strings.Contains(out, p.Node) {
			t.Errorf("%s is not named: %s", p.Node, out)
		}
	}
	type result struct {
		code int
		out  string
	}
	waited := make(chan result, 1)
	go func() { code, out := run("", "wait", "rr", "split"); waited <- result{code, out} }()
	for _, p := range leaving {
		p.Leave()
	}
	for _, p := range slow {
		p.Accept()
	}
	if r := <-waited; r.code != cli.ExitDone || !strings.Contains(r.out, "195 of 195") {
		t.Errorf("exit %d: %s", r.code, r.out)
	}

	slow[0].Hold() // It would be waited for, if nobody refused.
	fleet[100].Refuse("type.googleapis.com/envoy.config.route.v3.RouteConfiguration", "half a request")
	code, out = run(split(70), "apply", "--wait", "-f", "-")
	if code != cli.ExitFailed || !strings.Contains(out, fleet[100].Node+" refuses its routes: half a request") {
		t.Errorf("exit %d: %s", code, out)
	}
}

// TestWaitWithoutAnswers: a server that answers no more is told when the time is over,
// beside what it said last.
func TestWaitWithoutAnswers(t *testing.T) {
	outside.Slow(t)
	live, publisher := clitest.Followed(t.Cleanup)
	var asked atomic.Int32
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/split") && asked.Add(1) > 1 {
			http.Error(w, "the roof is on fire", http.StatusForbidden)
			return
		}
		live.Handler().ServeHTTP(w, r)
	}))
	t.Cleanup(api.Close)
	run := func(input string, args ...string) (int, string) {
		var out bytes.Buffer
		c := &cli.Program{Stdin: strings.NewReader(input), Stdout: &out, Stderr: &out, Getenv: clitest.Env(api.URL)}
		return root.Run(t.Context(), c, args), out.String()
	}
	run(simulated.Reviews, "apply", "-f", "-")
	run("", "problems")
	p, err := simulated.Connect(publisher, simulated.Node(1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Leave)
	p.Hold()
	if code, out := run("apiVersion: config.istio.io/v1alpha2\nkind: RouteRule\nmetadata: {name: split}\nspec: {destination: {name: reviews}, httpFault: {abort: {percent: 1, httpStatus: 503}}}\n", "create", "-f", "-"); code != cli.ExitDone {
		t.Fatal(out)
	}
	run("", "problems")
	code, out := run("", "wait", "rr", "split", "--timeout", "5s")
	if code != cli.ExitFailed || !strings.Contains(out, "split is not programmed after --timeout 5s: 0 of 1") || !strings.Contains(out, "no answer since then") || !strings.Contains(out, "the roof is on fire") {
		t.Errorf("exit %d: %s", code, out)
	}
}
