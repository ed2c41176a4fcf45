package main

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/cli"
	"github.com/pilot-api/pilot-api/cmd/istioctl/root"
	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/internal/simulated"
)

// screen is a writer that can be waited on.
type screen struct {
	mu   sync.Mutex
	text bytes.Buffer
	more chan struct{}
}

func newScreen() *screen { return &screen{more: make(chan struct{}, 1)} }

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text.Write(p)
	select {
	case s.more <- struct{}{}:
	default:
	}
	return len(p), nil
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// wait returns when the screen shows so many lines.
func (s *screen) wait(t *testing.T, lines int) {
	t.Helper()
	deadline := time.After(20 * time.Second)
	for strings.Count(s.String(), "\n") < lines {
		select {
		case <-s.more:
		case <-deadline:
			t.Fatalf("want %d lines, have:\n%s", lines, s)
		}
	}
}

// waitFor returns when the screen shows a line that an expression matches, which has
// one blank for many.
func (s *screen) waitFor(t *testing.T, line string) {
	t.Helper()
	want := regexp.MustCompile("(?m)^" + line)
	deadline := time.After(20 * time.Second)
	for !want.MatchString(blanks.ReplaceAllString(s.String(), " ")) {
		select {
		case <-s.more:
		case <-deadline:
			t.Fatalf("want a line %s, have:\n%s", want, s)
		}
	}
}

// run runs one command line to its end.
func run(t *testing.T, url, stdin string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	c := &cli.Program{Stdin: strings.NewReader(stdin), Stdout: &out, Stderr: &errs, Getenv: env(url)}
	code = root.Run(t.Context(), c, args)
	return out.String(), errs.String(), code
}

func env(url string) func(string) string {
	return func(name string) string {
		if name == "ISTIOCTL_SERVER" {
			return url
		}
		return ""
	}
}

func apply1(t *testing.T, url, text string, flags ...string) (stdout string) {
	t.Helper()
	stdout, stderr, code := run(t, url, text, append([]string{"apply", "-f", "-"}, flags...)...)
	if code != cli.ExitDone {
		t.Fatalf("apply: exit %d: %s", code, stderr)
	}
	return stdout
}

// watch starts a watch; the function that comes back interrupts it and returns
// its exit code.
func watch(t *testing.T, url string, args ...string) (*screen, func() int) {
	out, _, interrupt := watchBoth(t, url, args...)
	return out, interrupt
}

// watchBoth is watch with what is said beside.
func watchBoth(t *testing.T, url string, args ...string) (out, errs *screen, interrupt func() int) {
	t.Helper()
	out, errs = newScreen(), newScreen()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan int, 1)
	c := &cli.Program{Stdin: strings.NewReader(""), Stdout: out, Stderr: errs, Getenv: env(url)}
	go func() { done <- root.Run(ctx, c, args) }()
	return out, errs, func() int {
		cancel()
		return <-done
	}
}

func rule(name, version string) string {
	return "apiVersion: config.istio.io/v1alpha2\nkind: RouteRule\nmetadata: {name: " + name + "}\n" +
		"spec: {destination: {name: reviews}, route: [{labels: {version: " + version + "}}]}\n"
}

var blanks = regexp.MustCompile(` +`)

// events are the first two columns of a table, without its header.
func events(text string) []string {
	var got []string
	for _, line := range strings.Split(strings.TrimSpace(text), "\n")[1:] {
		columns := strings.Fields(blanks.ReplaceAllString(line, " "))
		got = append(got, columns[0]+" "+columns[1])
	}
	return got
}

func TestWatchShowsEveryChangeOnce(t *testing.T) {
	server := startServer(t)
	apply1(t, server.url(), rule("a", "v1"))
	apply1(t, server.url(), rule("b", "v1"))
	out, interrupt := watch(t, server.url(), "watch", "routerules")
	out.wait(t, 3) // The header and both rules.
	apply1(t, server.url(), rule("a", "v2"))
	if _, stderr, code := run(t, server.url(), "", "delete", "rr", "b"); code != cli.ExitDone {
		t.Fatal(stderr)
	}
	out.wait(t, 5)
	if code := interrupt(); code != cli.ExitDone {
		t.Errorf("interrupted watch: exit %d", code)
	}
	want := []string{"ADDED a", "ADDED b", "MODIFIED a", "DELETED b"}
	if diff := cmp.Diff(want, events(out.String())); diff != "" {
		t.Errorf("events (-want +got):\n%s\n%s", diff, out)
	}
}

// TestWatchOnASlowScreen: every change is shown in order, also those that came
// while an earlier one was being written.
func TestWatchOnASlowScreen(t *testing.T) {
	server := startServer(t)
	apply1(t, server.url(), rule("a", "v1"))
	apply1(t, server.url(), rule("b", "v1"))
	out, interrupt := watch(t, server.url(), "watch", "routerules")
	out.wait(t, 3)
	out.mu.Lock() // Nothing can be written.
	for _, version := range []string{"v2", "v3", "v4"} {
		apply1(t, server.url(), rule("a", version))
	}
	_, stderr, code := run(t, server.url(), "", "delete", "rr", "b")
	apply1(t, server.url(), rule("c", "v1"))
	out.mu.Unlock()
	if code != cli.ExitDone {
		t.Fatal(stderr)
	}
	want := []string{"ADDED a", "ADDED b", "MODIFIED a", "MODIFIED a", "MODIFIED a", "DELETED b", "ADDED c"}
	out.wait(t, 1+len(want))
	interrupt()
	if diff := cmp.Diff(want, events(out.String())); diff != "" {
		t.Errorf("events (-want +got):\n%s\n%s", diff, out)
	}
}

func TestWatchGoesOnAfterADisconnect(t *testing.T) {
	for _, tc := range []struct {
		name   string
		forget bool
	}{
		{"resumes", false},
		{"tells the difference when its revision is gone", true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			server := startServer(t)
			apply1(t, server.url(), rule("a", "v1"))
			apply1(t, server.url(), rule("b", "v1"))
			out, interrupt := watch(t, server.url(), "watch", "routerules")
			out.wait(t, 3)
			server.stop()
			other := httptest.NewServer(newServer(server.store).Handler())
			defer other.Close()
			apply1(t, other.URL, rule("b", "v2"))
			apply1(t, other.URL, rule("c", "v1"))
			if tc.forget {
				server.compact()
			}
			server.start()
			out.wait(t, 5)
			interrupt()
			want := []string{"ADDED a", "ADDED b", "MODIFIED b", "ADDED c"}
			if diff := cmp.Diff(want, events(out.String())); diff != "" {
				t.Errorf("events (-want +got):\n%s\n%s", diff, out)
			}
		})
	}
}

func TestWatchTellsALossOnce(t *testing.T) {
	server := startServer(t)
	apply1(t, server.url(), rule("a", "v1"))
	out, errs, interrupt := watchBoth(t, server.url(), "watch", "routerules")
	out.wait(t, 2)
	server.stop()
	errs.wait(t, 1)
	server.start()
	errs.wait(t, 2)
	apply1(t, server.url(), rule("b", "v1"))
	out.wait(t, 3)
	interrupt()
	want := regexp.MustCompile(`^connection to ` + server.url() + ` lost, retrying: .+\nconnected again\n$`)
	if !want.MatchString(errs.String()) {
		t.Errorf("stderr %q, want %s", errs, want)
	}
}

func TestWatchWaitsForWhatIsNotThereYet(t *testing.T) {
	server := startServer(t)
	out, errs, interrupt := watchBoth(t, server.url(), "watch", "rr", "later")
	errs.wait(t, 1)
	apply1(t, server.url(), rule("later", "v1"))
	out.wait(t, 2)
	interrupt()
	if want := "routerule/later does not exist yet in namespace default\n"; errs.String() != want {
		t.Errorf("stderr %q, want %q", errs, want)
	}
	_, stderr, code := run(t, server.url(), "", "get", "rr", "never", "-w")
	if want := "error: routerule/never not found in namespace default\n"; code != cli.ExitFailed || stderr != want {
		t.Errorf("get -w: exit %d: %q, want %q", code, stderr, want)
	}
}

func TestGetWatchShowsRows(t *testing.T) {
	server := startServer(t)
	apply1(t, server.url(), rule("a-long-name", "v1"))
	out, interrupt := watch(t, server.url(), "get", "rr", "a-long-name", "-w")
	out.wait(t, 2)
	apply1(t, server.url(), rule("other", "v1"))
	apply1(t, server.url(), rule("a-long-name", "v2"))
	out.wait(t, 3)
	interrupt()
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	for _, line := range lines[1:] {
		if !strings.HasPrefix(line, "a-long-name   reviews") {
			t.Errorf("row %q", line)
		}
	}
	if column := strings.Index(lines[0], "DESTINATION"); column != len("a-long-name   ") {
		t.Errorf("columns are not aligned:\n%s", out)
	}
}

// TestWatchWideShowsHowFar: the proxies that run an object are a column, and that
// there are more of them now is shown without a change of the object.
func TestWatchWideShowsHowFar(t *testing.T) {
	outside.Slow(t)
	for _, tc := range []struct {
		verb []string
		what string // happened, as the first column
	}{{[]string{"get", "rr", "-w"}, ""}, {[]string{"watch", "rr"}, "MODIFIED "}} {
		t.Run(tc.verb[0], func(t *testing.T) {
			live, publisher := followed(t.Cleanup)
			api := httptest.NewServer(live.Handler())
			t.Cleanup(api.Close)
			apply1(t, api.URL, simulated.Reviews)
			apply1(t, api.URL, rule("a-long-name", "v1"))
			if _, stderr, code := run(t, api.URL, "", "wait", "rr", "a-long-name"); code != cli.ExitDone {
				t.Fatal(stderr)
			}
			out, interrupt := watch(t, api.URL, append(tc.verb, "-o", "wide")...)
			out.wait(t, 2)
			p, err := simulated.Connect(publisher, simulated.Node(1))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(p.Leave)
			out.waitFor(t, tc.what+"a-long-name reviews .* 1/1 ")
			p.Hold()
			apply1(t, api.URL, rule("a-long-name", "v2"))
			out.waitFor(t, tc.what+"a-long-name reviews .*v2.* 0/1 ")
			p.Accept()
			out.waitFor(t, tc.what+"a-long-name reviews .*v2.* 1/1 ")
			interrupt()
			lines := strings.Split(strings.TrimSpace(out.String()), "\n")
			column := strings.Index(lines[0], "PROGRAMMED")
			if column < 0 {
				t.Fatalf("no column:\n%s", out)
			}
			for i, line := range lines[1:] {
				if line == lines[i] || column >= len(line) || line[column-1] != ' ' || line[column] == ' ' {
					t.Errorf("row %q below %q", line, lines[i])
				}
			}
		})
	}
}

// TestProxyStatusGoesOn: it waits out that there is no server, and then shows what
// is there.
func TestProxyStatusGoesOn(t *testing.T) {
	outside.Slow(t)
	live, publisher := followed(t.Cleanup)
	var away atomic.Bool
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if away.Load() {
			panic(http.ErrAbortHandler)
		}
		live.Handler().ServeHTTP(w, r)
	}))
	defer api.Close()
	if err := publisher.Await(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	connect := func(n int) *simulated.Proxy {
		p, err := simulated.Connect(publisher, simulated.Node(n))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Leave)
		return p
	}
	connect(1)
	out, errs, interrupt := watchBoth(t, api.URL, "proxy-status", "-w", "-o", "json")
	out.wait(t, 1)
	away.Store(true)
	errs.wait(t, 1)
	second := connect(2)
	away.Store(false)
	errs.wait(t, 2)
	for !strings.Contains(out.String(), second.Node) {
		out.wait(t, strings.Count(out.String(), "\n")+1)
	}
	if code := interrupt(); code != cli.ExitDone {
		t.Errorf("exit %d", code)
	}
	want := regexp.MustCompile(`^connection to ` + api.URL + ` lost, retrying: .+\nconnected again\n$`)
	if !want.MatchString(errs.String()) {
		t.Errorf("stderr %q, want %s", errs, want)
	}
}
