package writes_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/cli"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/clitest"
	"github.com/pilot-api/pilot-api/cmd/istioctl/root"
	"github.com/pilot-api/pilot-api/store"
	"github.com/pilot-api/pilot-api/store/memory"
)

func TestProgressIsForTerminalsAndLongWork(t *testing.T) {
	const drawnFrom = 20 // objects
	for _, tc := range []struct {
		objects  int
		terminal bool
		want     bool
	}{
		{drawnFrom, true, true},
		{drawnFrom - 1, true, false},
		{drawnFrom, false, false},
	} {
		server := clitest.Start(t)
		var out, errs bytes.Buffer
		c := &cli.Program{
			Stdin: strings.NewReader(clitest.ManyRules(tc.objects)), Stdout: &out, Stderr: &errs,
			StderrIsTerminal: tc.terminal, Getenv: clitest.Env(server.URL()),
		}
		if code := root.Run(t.Context(), c, []string{"create", "-f", "-"}); code != cli.ExitDone {
			t.Fatalf("exit %d: %s", code, &errs)
		}
		drawn := strings.Contains(errs.String(), fmt.Sprintf("1 of %d", tc.objects))
		if drawn != tc.want {
			t.Errorf("%d objects, terminal %v: progress drawn %v, want %v", tc.objects, tc.terminal, drawn, tc.want)
		}
		if !strings.HasSuffix(out.String(), fmt.Sprintf("%d created\n", tc.objects)) {
			t.Errorf("no sum at the end of:\n%s", &out)
		}
	}
}

// TestServerLostOnTheWay: what was done is told, and so is what was not.
func TestServerLostOnTheWay(t *testing.T) {
	handler := clitest.NewServer(memory.New()).Handler()
	var writes atomic.Int32
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if writes.Add(1) > 2 {
			panic(http.ErrAbortHandler)
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close)
	stdout, stderr, code := clitest.Run(t, srv.URL, clitest.ManyRules(20), "create", "-f", "-")
	if code != cli.ExitFailed {
		t.Errorf("exit %d, want %d", code, cli.ExitFailed)
	}
	if want := "routerule/r0 created\nrouterule/r1 created\n"; stdout != want {
		t.Errorf("stdout %q, want %q", stdout, want)
	}
	for _, want := range []string{
		"error: routerule/r2: no answer came from " + srv.URL,
		"; it may or may not be created: look with 'istioctl get routerule r2 -n default', or run 'istioctl apply' to be sure\n",
		"\nrouterule/r12 not sent\n… and 7 more not sent\n2 created, 1 failed, 17 not sent\n",
	} {
		if !strings.Contains(stderr, want) {
			t.Errorf("stderr misses %q:\n%s", want, stderr)
		}
	}
	_, stderr, _ = clitest.Run(t, srv.URL, "", "delete", "rr", "r0")
	if want := "may or may not be deleted: look with 'istioctl get routerule r0 -n default', or run it again with --ignore-not-found"; !strings.Contains(stderr, want) {
		t.Errorf("stderr of delete misses %q:\n%s", want, stderr)
	}
}

// TestApplyLostOnTheWay: whether the write was an update or a create, it may be done.
func TestApplyLostOnTheWay(t *testing.T) {
	handler := clitest.NewServer(memory.New()).Handler()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			handler.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler)
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close)
	_, stderr, code := clitest.Run(t, srv.URL, clitest.ManyRules(1), "apply", "-f", "-")
	if want := "may or may not be applied: look with 'istioctl get routerule r0 -n default'"; code != cli.ExitFailed || !strings.Contains(stderr, want) {
		t.Errorf("exit %d, stderr misses %q:\n%s", code, want, stderr)
	}
}

// TestUnknownOutcome: a server that does not know what became of a write is not
// asked again, and the user is told where to look.
func TestUnknownOutcome(t *testing.T) {
	var asked atomic.Int32
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		status := store.ToStatus(&store.Error{Kind: store.ErrOutcomeUnknown})
		w.WriteHeader(int(status.Code))
		if err := json.NewEncoder(w).Encode(status); err != nil {
			panic(err)
		}
	}))
	t.Cleanup(srv.Close)
	_, stderr, code := clitest.Run(t, srv.URL, clitest.ManyRules(2), "create", "-f", "-")
	if code != cli.ExitFailed || asked.Load() != 1 {
		t.Errorf("exit %d after %d requests", code, asked.Load())
	}
	for _, want := range []string{"outcome unknown", "look with 'istioctl get routerule r0 -n default'", "1 failed, 1 not sent"} {
		if !strings.Contains(stderr, want) {
			t.Errorf("stderr misses %q:\n%s", want, stderr)
		}
	}
}

// TestSilentServer: each limit says its own name.
func TestSilentServer(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	t.Cleanup(srv.Close)
	for _, limit := range []string{"--request-timeout", "--timeout"} {
		_, stderr, code := clitest.Run(t, srv.URL, "", "get", "rr", limit, "20ms")
		if code != cli.ExitFailed || !strings.Contains(stderr, limit+" 20ms") {
			t.Errorf("%s: exit %d: %s", limit, code, stderr)
		}
	}
}

// TestWhatIsPostedIsTheAuthorsText looks at the bytes on the wire.
func TestWhatIsPostedIsTheAuthorsText(t *testing.T) {
	handler := clitest.NewServer(memory.New()).Handler()
	var bodies []string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body bytes.Buffer
		if _, err := body.ReadFrom(r.Body); err != nil {
			t.Error(err)
		}
		bodies = append(bodies, r.Header.Get("Content-Type")+"\n"+body.String())
		r.Body = http.NoBody
		if body.Len() > 0 {
			r.Body = &readCloser{body}
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close)
	text := "# Why: see the ticket.\n" + clitest.Rule("mine", "v1")
	if _, stderr, code := clitest.Run(t, srv.URL, text, "create", "-f", "-"); code != cli.ExitDone {
		t.Fatal(stderr)
	}
	if want := "application/yaml\n" + text; len(bodies) != 1 || bodies[0] != want {
		t.Errorf("posted %q, want %q", bodies, want)
	}
}

// readCloser is a body that was read once and can be read again.
type readCloser struct{ bytes.Buffer }

func (*readCloser) Close() error { return nil }
