package bootstrap_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/cli"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/clitest"
)

// TestInterruptedBootstrap ends the command while a server does not answer. It must print no
// bootstrap.
func TestInterruptedBootstrap(t *testing.T) {
	asked := make(chan struct{}, 10)
	api := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		<-r.Context().Done()
	}))
	t.Cleanup(api.Close)
	const node = "sidecar~10.0.0.1~a.default~default.svc.cluster.local"
	out, errs, interrupt := clitest.WatchBoth(t, api.URL, "bootstrap", node)
	<-asked
	if code := interrupt(); code != cli.ExitInterrupted || out.String() != "" || errs.String() != "error: interrupted\n" {
		t.Errorf("exit %d, %q, %q", code, out, errs)
	}
	stdout, stderr, code := clitest.Run(t, api.URL, "", "bootstrap", node, "--timeout", "10ms")
	if code != cli.ExitFailed || stdout != "" || stderr != "error: not done after --timeout 10ms\n" {
		t.Errorf("with a timeout: exit %d, %q, %q", code, stdout, stderr)
	}
}
