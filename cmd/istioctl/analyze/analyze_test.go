package analyze_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/cli"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/clitest"
	"github.com/pilot-api/pilot-api/cmd/istioctl/root"
)

// TestAnalyzeTellsWhatIsLeftOut: an answer that is not all of it does not look as if
// nothing were lost.
func TestAnalyzeTellsWhatIsLeftOut(t *testing.T) {
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("api") != "v1" {
			t.Errorf("asks %s", r.URL)
		}
		answer := `{"revision":7,"problems":[],"notLookedAt":3}`
		if r.Method == http.MethodPost {
			answer = `{"revision":7,"changes":[],"problems":[],"solved":[],"notLookedAtInV1":4}`
		}
		_, _ = io.WriteString(w, answer)
	}))
	defer api.Close()
	for more, want := range map[string]string{
		"":            "3 more configurations",
		"--live -f -": "4 more configurations",
	} {
		var out, errs bytes.Buffer
		c := &cli.Program{Stdin: strings.NewReader(analyzedRule), Stdout: &out, Stderr: &errs, Getenv: clitest.Env(api.URL)}
		if code := root.Run(t.Context(), c, append([]string{"analyze", "--v1"}, strings.Fields(more)...)); code != cli.ExitDone {
			t.Errorf("%q: exit %d", more, code)
		}
		want = "Warning: not looked at for what the v1 API loses: " + want + "\nNo problems found at revision 7.\n"
		if errs.String() != want || out.Len() > 0 {
			t.Errorf("%q: says %q and %q, want %q", more, &out, &errs, want)
		}
	}
}

const analyzedRule = `apiVersion: config.istio.io/v1alpha2
kind: RouteRule
metadata: {name: one}
spec: {destination: {name: reviews}}
`
