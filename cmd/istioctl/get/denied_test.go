package get_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/cli"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/clitest"
)

// TestDeniedFollowersEnd withdraws the right to read while commands follow. They end with the
// server's reason.
func TestDeniedFollowersEnd(t *testing.T) {
	for reason, code := range map[string]int{"Unauthorized": http.StatusUnauthorized, "Forbidden": http.StatusForbidden} {
		for _, line := range []string{"watch rr", "get rr -w", "get rr -w -o json", "proxy-status -w"} {
			t.Run(fmt.Sprint(code, " ", line), func(t *testing.T) {
				t.Parallel()
				live, _ := clitest.Live(t)
				clitest.Apply(t, live, clitest.Rule("a", "v1"))
				var denied atomic.Bool
				front := denying(t, live, code, reason, "the token has ended", denied.Load)
				out, errs, end := clitest.WatchToEnd(t, front.URL, strings.Fields(line)...)
				if !strings.HasPrefix(line, "proxy-status") {
					out.Wait(t, 1)
				} else {
					errs.WaitFor(t, "No proxies")
				}
				denied.Store(true)
				front.CloseClientConnections()
				if got := end(); got != cli.ExitFailed {
					t.Errorf("exit %d", got)
				}
				if want := fmt.Sprintf("error: server: the token has ended (%d %s)\n", code, reason); !strings.HasSuffix(errs.String(), want) {
					t.Errorf("want %q at the end of %q", want, errs)
				}
			})
		}
	}
}

// denying returns a server in front of another one, which denies requests while denies says
// so.
func denying(t *testing.T, live string, code int, reason, message string, denies func() bool) *httptest.Server {
	t.Helper()
	behind, err := url.Parse(live)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(behind)
	proxy.FlushInterval = -1
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !denies() {
			proxy.ServeHTTP(w, r)
			return
		}
		w.WriteHeader(code)
		fmt.Fprintf(w, `{"kind": "Status", "status": "Failure", "code": %d, "reason": %q, "message": %q}`, code, reason, message)
	}))
	t.Cleanup(front.Close)
	return front
}

// TestFollowersSurviveAFewDenials, as of a replica that does not have a new role yet.
func TestFollowersSurviveAFewDenials(t *testing.T) {
	live, _ := clitest.Live(t)
	clitest.Apply(t, live, clitest.Rule("a", "v1"))
	var left atomic.Int32
	front := denying(t, live, http.StatusForbidden, "Forbidden", "not yet", func() bool { return left.Add(-1) >= 0 })
	out, interrupt := clitest.Watch(t, front.URL, "watch", "rr")
	out.Wait(t, 2)
	for _, version := range []string{"v2", "v3"} {
		left.Store(2)
		front.CloseClientConnections()
		clitest.Apply(t, live, clitest.Rule("a", version))
		out.WaitFor(t, "MODIFIED a .*"+version)
	}
	if code := interrupt(); code != cli.ExitDone {
		t.Errorf("exit %d", code)
	}
}
