package analyze_test

import (
	"strings"
	"testing"

	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/cli"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/clitest"
	"github.com/pilot-api/pilot-api/internal/simulated"
)

// TestAnalyzeExitCodesForPipelines: the exit code is 0 if every object is honoured, 1 if one
// is not, and 2 if the check was not possible. With --live the server checks its objects
// with those of the files in their place, and stores nothing.
func TestAnalyzeExitCodesForPipelines(t *testing.T) {
	url, _ := clitest.Live(t)
	clitest.Apply(t, url, simulated.Reviews)
	good, bad := clitest.Rule("one", "v1"), strings.Replace(clitest.Rule("one", "v1"), "name: reviews", "name: nobody", 1)
	for name, c := range map[string]struct {
		url, stdin string
		args       []string
		exit       int
		want       string
	}{
		"a server in order":             {url, "", nil, cli.ExitDone, "No problems found"},
		"a file alone":                  {"http://127.0.0.1:1", simulated.Reviews + "---\n" + good, []string{"-f", "-"}, cli.ExitDone, "No problems found"},
		"a file without its service":    {"http://127.0.0.1:1", good, []string{"-f", "-"}, cli.ExitFailed, "PA0101"},
		"a file beside the server's":    {url, good, []string{"--live", "-f", "-"}, cli.ExitDone, "No problems found"},
		"an unknown host":               {url, bad, []string{"--live", "-f", "-"}, cli.ExitFailed, "PA0101"},
		"a server that does not answer": {"http://127.0.0.1:1", "", nil, cli.ExitUsage, "127.0.0.1:1"},
	} {
		stdout, stderr, code := clitest.Run(t, c.url, c.stdin, append([]string{"analyze"}, c.args...)...)
		if code != c.exit || !strings.Contains(stdout+stderr, c.want) {
			t.Errorf("%s: exit %d, want %d; no %q in: %s%s", name, code, c.exit, c.want, stdout, stderr)
		}
	}
	if out, _, _ := clitest.Run(t, url, "", "get", "routerules", "-o", "name"); out != "" {
		t.Errorf("analyze --live has stored %s", out)
	}
}
