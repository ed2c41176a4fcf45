package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pilot-api/pilot-api/internal/testbed"
)

// asProgram makes the test binary the program itself: what a process does when
// it ends can only be seen from outside.
const asProgram = "PILOT_TEST_RUN_AS_PROGRAM"

func TestMain(m *testing.M) {
	testbed.RunMember()
	runGreedy()
	if os.Getenv(asProgram) == "" {
		os.Setenv(asProgram, "1") // For those that are started.
		os.Exit(m.Run())
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	code := Main(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// program is a running pilot-api of its own process.
type program struct {
	testbed.Server
	addr string
	log  string // Path of the file.
}

func startProgram(t testing.TB, data string, flags ...string) *program {
	t.Helper()
	return startProgramAs(t, os.Args[:1], data, flags...)
}

// startProgramAs takes the words before the flags.
func startProgramAs(t testing.TB, command []string, data string, flags ...string) *program {
	t.Helper()
	addr, dir := freeAddress(t), t.TempDir()
	args := slices.Concat(command[1:], []string{"--listen", addr, "--grpc-listen", "127.0.0.1:0", "--data-dir", data}, flags)
	process := testbed.NewProcess(dir, "pilot-api", command[0], args...)
	p := &program{testbed.Server{Process: process, URL: "http://" + addr}, addr, filepath.Join(dir, "pilot-api.log")}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := p.Ready(ctx); err != nil {
		t.Fatal(err)
	}
	return p
}

// ask sends a request and returns the answer with its body.
func (p *program) ask(t testing.TB, method, path, body string) (*http.Response, string) {
	t.Helper()
	return p.askAs(t, "", method, path, body)
}

// askAs is ask with a token, if it is not "".
func (p *program) askAs(t testing.TB, token, method, path, body string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, p.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(text)
}

// post creates a rule of some size and reports whether that was acknowledged.
func (p *program) post(name string, size int) bool {
	resp, err := http.Post(p.URL+rulesPath, "application/json", strings.NewReader(largeRule(name, size)))
	if err != nil {
		return false
	}
	resp.Body.Close()
	return resp.StatusCode == http.StatusCreated
}

const rulesPath = "/apis/config.istio.io/v1alpha2/namespaces/default/routerules"

func largeRule(name string, size int) string {
	return fmt.Sprintf(`{"apiVersion":"config.istio.io/v1alpha2","kind":"RouteRule","metadata":{"name":%q,"namespace":"default"},`+
		`"spec":{"destination":{"name":"reviews"},"appendHeaders":{"x-fill":%q},"route":[{"labels":{"version":"v1"}}]}}`,
		name, strings.Repeat("x", size))
}
