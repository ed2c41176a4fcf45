package clitest

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/cli"
	"github.com/pilot-api/pilot-api/cmd/istioctl/root"
	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/server"
	"github.com/pilot-api/pilot-api/store"
	"github.com/pilot-api/pilot-api/store/cache"
	"github.com/pilot-api/pilot-api/store/memory"
)

// Followed returns a server whose proxies follow its objects. atEnd receives the function
// that ends it.
func Followed(atEnd func(func())) (*server.Server, *discovery.Publisher) {
	return FollowedOver(memory.New(), nil, atEnd)
}

// FollowedOver is Followed over a store. Some proxies were connected to an earlier server
// of that store.
func FollowedOver(mem *memory.Store, before []discovery.Presence, atEnd func(func())) (*server.Server, *discovery.Publisher) {
	reads := cache.New(mem, cache.Options{Log: slog.New(slog.DiscardHandler)})
	proxies := discovery.New(discovery.Options{Source: reads, CheckPatience: time.Minute})
	proxies.Remember(before)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = reads.Run(ctx) })
	running.Go(func() { _ = proxies.Run(ctx) })
	atEnd(func() { cancel(); running.Wait() })
	return server.New(server.Options{Store: store.Strict(mem), Reads: reads, Discovery: proxies, ShutdownTimeout: time.Second}), proxies
}

// Live starts a server whose proxies follow its objects, until the end of the test. It
// returns the URL of the server, and the Publisher for the connections of simulated
// proxies.
func Live(t *testing.T) (url string, proxies *discovery.Publisher) {
	t.Helper()
	live, proxies := Followed(t.Cleanup)
	api := httptest.NewServer(live.Handler())
	t.Cleanup(api.Close)
	if err := proxies.Await(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	return api.URL, proxies
}

// NewServer returns a server over a store, without proxies.
func NewServer(s store.Interface) *server.Server {
	return server.New(server.Options{Store: store.Strict(s), Reads: s, ShutdownTimeout: time.Second})
}

// Server is a server that can be stopped and started again at the same address. Its store
// stays.
type Server struct {
	Store *memory.Store
	Stop  func() // stops the server
	t     *testing.T
	addr  string
}

// Start starts a server with an empty store, until the end of the test.
func Start(t *testing.T) *Server {
	l := &Server{t: t, Store: memory.New(), addr: "127.0.0.1:0"}
	l.Start()
	t.Cleanup(func() { l.Stop() })
	return l
}

// URL returns the address of the server.
func (l *Server) URL() string { return "http://" + l.addr }

// Start starts the server again after a Stop.
func (l *Server) Start() {
	ln, err := net.Listen("tcp", l.addr)
	if err != nil {
		l.t.Fatal(err)
	}
	l.addr = ln.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- NewServer(l.Store).Serve(ctx, ln) }()
	l.Stop = func() {
		cancel()
		if err := <-done; err != nil {
			l.t.Error(err)
		}
		l.Stop = func() {}
	}
}

// Compact makes the store forget all changes so far.
func (l *Server) Compact() {
	revision, err := l.Store.Revision(context.Background())
	if err != nil {
		l.t.Fatal(err)
	}
	l.Store.Compact(revision)
}

// Screen is a writer that can be waited on.
type Screen struct {
	mu   sync.Mutex
	text bytes.Buffer
	more chan struct{}
}

func newScreen() *Screen { return &Screen{more: make(chan struct{}, 1)} }

func (s *Screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text.Write(p)
	select {
	case s.more <- struct{}{}:
	default:
	}
	return len(p), nil
}

func (s *Screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// Hold makes writers wait until release is called.
func (s *Screen) Hold() (release func()) {
	s.mu.Lock()
	return s.mu.Unlock
}

// Wait returns when the screen shows at least that number of lines.
func (s *Screen) Wait(t *testing.T, lines int) {
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

// WaitFor returns when a line of the screen begins with a match of the expression line.
// Runs of blanks on the screen count as one blank.
func (s *Screen) WaitFor(t *testing.T, line string) {
	t.Helper()
	want := regexp.MustCompile("(?m)^" + line)
	deadline := time.After(20 * time.Second)
	for !want.MatchString(Blanks.ReplaceAllString(s.String(), " ")) {
		select {
		case <-s.more:
		case <-deadline:
			t.Fatalf("want a line %s, have:\n%s", want, s)
		}
	}
}

// Run runs one command line to its end.
func Run(t *testing.T, url, stdin string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	c := &cli.Program{Stdin: strings.NewReader(stdin), Stdout: &out, Stderr: &errs, Getenv: Env(url)}
	code = root.Run(t.Context(), c, args)
	return out.String(), errs.String(), code
}

// Env is the environment of a program that uses the server at a URL.
func Env(url string) func(string) string {
	return func(name string) string {
		if name == "ISTIOCTL_SERVER" {
			return url
		}
		return ""
	}
}

// Apply applies objects from standard input.
func Apply(t *testing.T, url, text string, flags ...string) (stdout string) {
	t.Helper()
	stdout, stderr, code := Run(t, url, text, append([]string{"apply", "-f", "-"}, flags...)...)
	if code != cli.ExitDone {
		t.Fatalf("apply: exit %d: %s", code, stderr)
	}
	return stdout
}

// Watch starts a command that watches. The returned function interrupts it and returns its
// exit code.
func Watch(t *testing.T, url string, args ...string) (*Screen, func() int) {
	out, _, interrupt := WatchBoth(t, url, args...)
	return out, interrupt
}

// WatchBoth is Watch with standard error as a second screen.
func WatchBoth(t *testing.T, url string, args ...string) (out, errs *Screen, interrupt func() int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	out, errs, end := watch(ctx, url, args)
	return out, errs, func() int {
		cancel()
		return end()
	}
}

// WatchToEnd starts a command that watches. The returned function waits until the command
// ends by itself, and returns its exit code.
func WatchToEnd(t *testing.T, url string, args ...string) (out, errs *Screen, end func() int) {
	t.Helper()
	return watch(t.Context(), url, args)
}

func watch(ctx context.Context, url string, args []string) (out, errs *Screen, end func() int) {
	out, errs = newScreen(), newScreen()
	done := make(chan int, 1)
	c := &cli.Program{Stdin: strings.NewReader(""), Stdout: out, Stderr: errs, Getenv: Env(url)}
	go func() { done <- root.Run(ctx, c, args) }()
	return out, errs, func() int { return <-done }
}

// Rule returns a RouteRule that routes to a version.
func Rule(name, version string) string {
	return "apiVersion: config.istio.io/v1alpha2\nkind: RouteRule\nmetadata: {name: " + name + "}\n" +
		"spec: {destination: {name: reviews}, route: [{labels: {version: " + version + "}}]}\n"
}

// Blanks matches the space between columns.
var Blanks = regexp.MustCompile(` +`)

// ManyRules returns RouteRules as one text.
func ManyRules(n int) string {
	var text strings.Builder
	for i := range n {
		text.WriteString("---\n" + Rule(fmt.Sprintf("r%d", i), "v1"))
	}
	return text.String()
}

// Between starts a server that calls do before each page of a list except the first.
func Between(t *testing.T, l *Server, do func(page int)) (url string, requests *[]string) {
	requests = &[]string{}
	handler, pages := NewServer(l.Store).Handler(), 0
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*requests = append(*requests, r.URL.RawQuery)
		if r.URL.Query().Has("continue") {
			pages++
			do(pages)
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	return front.URL, requests
}
