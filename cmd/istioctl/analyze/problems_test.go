package analyze_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/cli"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/clitest"
	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/server"
	"github.com/pilot-api/pilot-api/store"
	"github.com/pilot-api/pilot-api/store/memory"
)

// compiled is a source whose objects no longer change.
type compiled []*schema.Object

func (c compiled) Snapshot() ([]*schema.Object, int64, bool) { return c, 7, true }
func (compiled) Since(int64) ([]schema.Change, int64, bool)  { return nil, 0, false }
func (c compiled) Changed() <-chan struct{}                  { return nil }
func (c compiled) Err() error                                { return nil }

// compiledServer is the URL of a server that has compiled the objects of a text.
func compiledServer(t *testing.T, text string) string {
	t.Helper()
	var objects compiled
	for _, doc := range schema.Split([]byte(text), "test") {
		found, problems, _ := doc.Objects(t.Context(), schema.DefaultNamespace)
		if err := problems.Err(); err != nil {
			t.Fatal(err)
		}
		objects = append(objects, found...)
	}
	proxies := discovery.New(discovery.Options{Source: objects})
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // Run publishes what is there before it looks at the context.
	if err := proxies.Run(ctx); !proxies.Ready() {
		t.Fatal(err)
	}
	s := memory.New()
	api := httptest.NewServer(server.New(server.Options{Store: store.Strict(s), Reads: s, Discovery: proxies}).Handler())
	t.Cleanup(api.Close)
	return api.URL
}

func TestProblems(t *testing.T) {
	url := compiledServer(t, clitest.Rule("one", "v1")+"---\n"+clitest.Rule("two", "v1")+"---\n"+
		strings.Replace(clitest.Rule("far", "v1"), "{name: far}", "{name: far, namespace: books}", 1))
	for _, tc := range []struct {
		args   []string
		want   []string // the first words of the lines after the header
		stderr string
	}{
		{nil, []string{"warning PA0101 RouteRule books/far", "warning PA0101 RouteRule default/one", "warning PA0101 RouteRule default/two"}, ""},
		{[]string{"-n", "books"}, []string{"warning PA0101 RouteRule books/far"}, ""},
		{[]string{"routerule", "two", "-n", "default"}, []string{"warning PA0101 RouteRule default/two"}, ""},
		{[]string{"rr/one", "rr/far"}, []string{"warning PA0101 RouteRule books/far", "warning PA0101 RouteRule default/one"}, ""},
		{[]string{"gateways"}, nil, "No problems found at revision 7.\n"},
	} {
		stdout, stderr, code := clitest.Run(t, url, "", append([]string{"problems"}, tc.args...)...)
		lines := strings.Split(strings.TrimSpace(stdout), "\n")[1:]
		if code != cli.ExitDone || stderr != tc.stderr || len(lines) != len(tc.want) {
			t.Errorf("%v: exit %d: %s\n%s", tc.args, code, stderr, stdout)
			continue
		}
		for i, want := range tc.want {
			if got := strings.Join(strings.Fields(lines[i])[:4], " "); got != want {
				t.Errorf("%v: line %q, want %q", tc.args, lines[i], want)
			}
		}
	}
}

func TestProblemsOfNothing(t *testing.T) {
	url := compiledServer(t, clitest.Rule("one", "v1"))
	for _, name := range []string{"vs/nope", "rr/nope"} {
		stdout, stderr, code := clitest.Run(t, url, "", "problems", name)
		if code != cli.ExitFailed || stdout != "" || !strings.HasSuffix(stderr, "/nope not found in any namespace\n") {
			t.Errorf("%s: exit %d: %q %q", name, code, stdout, stderr)
		}
	}
}

func TestProblemsForPrograms(t *testing.T) {
	url := compiledServer(t, clitest.Rule("one", "v1"))
	for format, want := range map[string]string{"json": `"revision": 7,`, "yaml": "\nrevision: 7\n"} {
		stdout, stderr, code := clitest.Run(t, url, "", "problems", "-o", format)
		if code != cli.ExitDone || !strings.Contains(stdout, want) || !strings.Contains(stdout, "NoSuchReference") {
			t.Errorf("-o %s: exit %d: %s\n%s", format, code, stderr, stdout)
		}
	}
	if _, stderr, code := clitest.Run(t, url, "", "problems", "pods"); code != cli.ExitUsage || !strings.Contains(stderr, `no kind "pods"`) {
		t.Errorf("problems pods: exit %d: %s", code, stderr)
	}
}

func TestProblemsNotCompiledInTime(t *testing.T) {
	late := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		status := store.ToStatus(&store.Error{Kind: store.ErrFuture, Detail: "that of revision 7 is in force"})
		w.WriteHeader(int(status.Code))
		_ = json.NewEncoder(w).Encode(status)
	}))
	t.Cleanup(late.Close)
	stdout, stderr, code := clitest.Run(t, late.URL, "", "problems")
	if code != cli.ExitFailed || stdout != "" || !strings.Contains(stderr, "that of revision 7 is in force") {
		t.Errorf("exit %d: %s\n%s", code, stderr, stdout)
	}
}
