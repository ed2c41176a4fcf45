package proxy_test

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/cli"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/clitest"
	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/internal/simulated"
)

// TestProxyStatusGoesOn: it waits out that there is no server, and then shows what
// is there.
func TestProxyStatusGoesOn(t *testing.T) {
	outside.Slow(t)
	live, publisher := clitest.Followed(t.Cleanup)
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
	out, errs, interrupt := clitest.WatchBoth(t, api.URL, "proxy-status", "-w", "-o", "json")
	out.Wait(t, 1)
	away.Store(true)
	errs.Wait(t, 1)
	second := connect(2)
	away.Store(false)
	errs.Wait(t, 2)
	for !strings.Contains(out.String(), second.Node) {
		out.Wait(t, strings.Count(out.String(), "\n")+1)
	}
	if code := interrupt(); code != cli.ExitDone {
		t.Errorf("exit %d", code)
	}
	want := regexp.MustCompile(`^connection to ` + api.URL + ` lost, retrying: .+\nconnected again\n$`)
	if !want.MatchString(errs.String()) {
		t.Errorf("stderr %q, want %s", errs, want)
	}
}
