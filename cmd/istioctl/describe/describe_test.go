package describe_test

import (
	"strings"
	"testing"

	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/cli"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/clitest"
	"github.com/pilot-api/pilot-api/internal/simulated"
)

// shop has a service, a DestinationRule with a subset that no instance has, and a
// VirtualService that uses the other subset.
const shop = simulated.Reviews + `---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: versions}
spec:
  host: reviews
  subsets: [{name: v1, labels: {version: v1}}, {name: v9, labels: {version: v9}}]
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: to-v1}
spec:
  hosts: [reviews]
  http: [{route: [{destination: {host: reviews, subset: v1}}]}]
`

// TestDescribeShowsAllThatIsKnown: describe shows the main fields of an object, the
// references from it and to it, its problems, the author of its last change, and the
// proxies that it affects. An object that does not exist is a failure.
func TestDescribeShowsAllThatIsKnown(t *testing.T) {
	url, proxies := clitest.Live(t)
	clitest.Apply(t, url, shop)
	p, err := simulated.Connect(proxies, simulated.Node(1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Leave)
	if _, stderr, code := clitest.Run(t, url, "", "wait", "vs", "to-v1"); code != cli.ExitDone {
		t.Fatal(stderr)
	}
	stdout, stderr, code := clitest.Run(t, url, "", "describe", "destinationrule", "versions")
	if code != cli.ExitDone {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	shown := clitest.Blanks.ReplaceAllString(stdout, " ")
	for what, line := range map[string]string{
		"the main fields":                "\nSubsets: v1,v9\n",
		"the status":                     "\n Programmed: True 1 of 1 proxies run it\n",
		"a reference to an object":       "\n spec.host ServiceEntry default/reviews ",
		"a reference to nothing":         "\n spec.subsets[1] <none> ",
		"an object that refers":          "\n VirtualService default/to-v1 spec.http[0].route[0].destination.subset ",
		"a problem":                      "\n warning PA0104 spec.subsets[1].labels ",
		"the program of the last change": " create <unknown> istioctl",
		"a proxy that runs the object":   "\n p-001.default sidecar delta runs it ",
	} {
		if !strings.Contains(shown, line) {
			t.Errorf("%s: no %q in\n%s", what, line, stdout)
		}
	}
	_, stderr, code = clitest.Run(t, url, "", "describe", "destinationrule", "absent")
	if code != cli.ExitFailed || !strings.Contains(stderr, "absent") {
		t.Errorf("an object that does not exist: exit %d: %s", code, stderr)
	}
}

// TestDescribeOfFilesAsksNoServer: with -f, describe knows the references and problems of
// the files, and needs no server.
func TestDescribeOfFilesAsksNoServer(t *testing.T) {
	stdout, stderr, code := clitest.Run(t, "http://127.0.0.1:1", shop, "describe", "destinationrule", "versions", "-f", "-")
	if code != cli.ExitDone {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	for _, want := range []string{"VirtualService default/to-v1", "PA0104"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("no %s in\n%s", want, stdout)
		}
	}
	if strings.Contains(stdout, "Proxies:") {
		t.Errorf("files have no proxies:\n%s", stdout)
	}
}
