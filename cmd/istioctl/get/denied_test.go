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
				behind, _ := url.Parse(live)
				var denied atomic.Bool
				proxy := httputil.NewSingleHostReverseProxy(behind)
				proxy.FlushInterval = -1
				front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if !denied.Load() {
						proxy.ServeHTTP(w, r)
						return
					}
					w.WriteHeader(code)
					fmt.Fprintf(w, `{"kind": "Status", "status": "Failure", "code": %d, "reason": %q, "message": "the token has ended"}`, code, reason)
				}))
				t.Cleanup(front.Close)
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

// TestFollowersSurviveAFewDenials is about a server that starts.
func TestFollowersSurviveAFewDenials(t *testing.T) {
	live, _ := clitest.Live(t)
	clitest.Apply(t, live, clitest.Rule("a", "v1"))
	behind, _ := url.Parse(live)
	var left atomic.Int32
	proxy := httputil.NewSingleHostReverseProxy(behind)
	proxy.FlushInterval = -1
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if left.Add(-1) < 0 {
			proxy.ServeHTTP(w, r)
			return
		}
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, `{"kind": "Status", "status": "Failure", "code": 403, "reason": "Forbidden", "message": "not yet"}`)
	}))
	t.Cleanup(front.Close)
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
