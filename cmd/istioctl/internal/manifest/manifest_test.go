package manifest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/cli"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/clitest"
	"github.com/pilot-api/pilot-api/internal/outside"
)

// TestAllIsReadBack takes the state of a server through a file: one List, far
// longer than any object may be.
func TestAllIsReadBack(t *testing.T) {
	outside.Slow(t)
	const n, size = 110, 10_000
	server := clitest.Start(t)
	var text strings.Builder
	for i := range n {
		text.WriteString("---\n" + strings.Replace(clitest.Rule(fmt.Sprintf("r%d", i), "v1"),
			"spec: {", "spec: {appendHeaders: {a: "+strings.Repeat("x", size)+"}, ", 1))
	}
	if _, stderr, code := clitest.Run(t, server.URL(), text.String(), "create", "-f", "-"); code != cli.ExitDone {
		t.Fatal(stderr)
	}
	for _, format := range []string{"yaml", "json"} {
		list, stderr, code := clitest.Run(t, server.URL(), "", "get", "all", "-o", format)
		if code != cli.ExitDone || len(list) < n*size {
			t.Fatalf("%d bytes: %s", len(list), stderr)
		}
		stdout, stderr, _ := clitest.Run(t, server.URL(), list, "apply", "-f", "-")
		if want := fmt.Sprintf("%d unchanged\n", n); !strings.HasSuffix(stdout, want) {
			t.Errorf("%s: no %q at the end of %s%s", format, want, stdout, stderr)
		}
	}
}

// TestListsOfOneAreUnpacked: what goes to the server is the object in it.
func TestListsOfOneAreUnpacked(t *testing.T) {
	server := clitest.Start(t)
	item := "- " + strings.ReplaceAll(clitest.Rule("only", "v1"), "\n", "\n  ")
	for _, kind := range []string{"List", "RouteRuleList"} {
		stdout, stderr, _ := clitest.Run(t, server.URL(), "kind: "+kind+"\nitems:\n"+item, "apply", "-f", "-")
		if !strings.HasPrefix(stdout, "routerule/only ") {
			t.Errorf("%s: %s%s", kind, stdout, stderr)
		}
	}
}
