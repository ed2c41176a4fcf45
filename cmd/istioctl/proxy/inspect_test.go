package proxy_test

import (
	"strings"
	"testing"

	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/cli"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/clitest"
	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/internal/simulated"
)

// TestRouteIsTheSameWithAndWithoutAServer: for a connected proxy, named by a part of its
// ID, the server explains a request and shows tables as istioctl does for the same files
// without a server.
func TestRouteIsTheSameWithAndWithoutAServer(t *testing.T) {
	url, proxies := clitest.Live(t)
	mesh := simulated.Reviews + "---\n" + clitest.Rule("all-to-v2", "v2")
	clitest.Apply(t, url, mesh)
	p := connect(t, proxies)
	for _, verb := range []struct {
		part, whole []string
		want        string
	}{
		{[]string{"route", "--from", "p-001", "http://reviews/"}, []string{"route", "--from", p.Node, "http://reviews/"}, "RouteRule default/all-to-v2"},
		{[]string{"route", "--from", "p-001", "--all"}, []string{"route", "--from", p.Node, "--all"}, "RouteRule default/all-to-v2"},
		{[]string{"proxy-config", "clusters", "p-001"}, []string{"proxy-config", "clusters", p.Node}, "|http|version=v2"},
		{[]string{"proxy-config", "endpoints", "p-001"}, []string{"proxy-config", "endpoints", p.Node}, "10.1.0.2:8080"},
	} {
		served, stderr, code := clitest.Run(t, url, "", verb.part...)
		if code != cli.ExitDone || !strings.Contains(served, verb.want) {
			t.Errorf("%v: exit %d: no %q in %s%s", verb.part, code, verb.want, served, stderr)
		}
		compiled, stderr, code := clitest.Run(t, "http://127.0.0.1:1", mesh, append(verb.whole, "-f", "-")...)
		if code != cli.ExitDone || compiled != served {
			t.Errorf("%v -f: exit %d: %s%swant\n%s", verb.whole, code, compiled, stderr, served)
		}
	}
}

// TestProxyStatusNamesARefusal: proxy-status shows the state of each type of a proxy's
// configuration, and with -o wide the proxy's message about what it refuses.
func TestProxyStatusNamesARefusal(t *testing.T) {
	url, proxies := clitest.Live(t)
	clitest.Apply(t, url, simulated.Reviews)
	p := connect(t, proxies)
	if _, stderr, code := clitest.Run(t, url, "", "wait", "se", "reviews"); code != cli.ExitDone {
		t.Fatal(stderr)
	}
	shown, stderr, code := clitest.Run(t, url, "", "proxy-status", "p-001")
	if want := "\np-001.default sidecar delta - SYNCED SYNCED SYNCED SYNCED "; code != cli.ExitDone || !strings.Contains(clitest.Blanks.ReplaceAllString(shown, " "), want) {
		t.Errorf("exit %d: no row %q in\n%s%s", code, want, shown, stderr)
	}
	p.Refuse(discovery.ClusterType, "no such cipher")
	watched, interrupt := clitest.Watch(t, url, "proxy-status", "p-001", "-w")
	clitest.Apply(t, url, clitest.Rule("all-to-v2", "v2"))
	watched.WaitFor(t, "p-001.default sidecar delta - REJECTED ")
	interrupt()
	wide, _, _ := clitest.Run(t, url, "", "proxy-status", "p-001", "-o", "wide")
	if !strings.Contains(wide, "no such cipher") {
		t.Errorf("proxy-status -o wide has no message:\n%s", wide)
	}
}

func connect(t *testing.T, proxies *discovery.Publisher) *simulated.Proxy {
	t.Helper()
	p, err := simulated.Connect(proxies, simulated.Node(1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Leave)
	return p
}
