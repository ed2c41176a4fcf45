package objects_test

import (
	"github.com/pilot-api/pilot-api/server/servertest"

	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pilot-api/pilot-api/server"
)

// TestURLsThatSayTooLittle checks that empty or unreadable parts of a URL do not
// mean "all" or "the default".
func TestURLsThatSayTooLittle(t *testing.T) {
	w := servertest.Start(t)
	w.Create("reviews")
	nowhere := strings.Replace(servertest.RulesPath, "/default/", "//", 1)
	for _, c := range []struct {
		method, path string
		code         int
	}{
		{"GET", nowhere, 404},
		{"POST", nowhere, 404},
		{"GET", nowhere + "/reviews", 404},
		{"DELETE", nowhere + "/reviews", 404},
		{"GET", servertest.RulesPath + "/", 404},
		{"DELETE", servertest.RulesPath + "/", 404},
		{"GET", servertest.RulesPath + "?%zz", 400},
		{"GET", servertest.RulesPath + "?limit=1;labelSelector=a", 400},
		{"POST", servertest.RulesPath + "?dryRun=%zz", 400},
	} {
		body := ""
		if c.method == http.MethodPost {
			body = servertest.Rule("ratings", 100)
		}
		st := w.Want(c.code, c.method, c.path, body, servertest.AsYAML).Failure(t)
		path, query, _ := strings.Cut(c.path, "?")
		if said := st.Message; !strings.Contains(said, path) && !strings.Contains(said, query) {
			t.Errorf("%s %s: %s", c.method, c.path, said)
		}
	}
}

// TestRevisionThatNeverComes checks that a read waits for its revision, but not as
// long as for everything else.
func TestRevisionThatNeverComes(t *testing.T) {
	w := servertest.Start(t, func(o *server.Options) {
		o.RevisionTimeout, o.RequestTimeout = 10*time.Millisecond, time.Hour
	})
	w.Create("reviews")
	for _, path := range []string{servertest.RulesPath, servertest.RulesPath + "/reviews"} {
		st := w.Want(http.StatusGatewayTimeout, "GET", path+"?resourceVersion=999", "").Failure(t)
		if !strings.Contains(st.Message, "999") || st.Details.RetryAfterSeconds == 0 {
			t.Errorf("got %q, %+v", st.Message, st.Details)
		}
	}
}

// TestWhatIsNotJSON checks the errors for unreadable bodies.
func TestWhatIsNotJSON(t *testing.T) {
	w := servertest.Start(t)
	w.Create("reviews")
	const asMerge = "Content-Type: application/merge-patch+json"
	for _, c := range []struct{ method, path, body, media, says string }{
		{"POST", servertest.RulesPath, "", servertest.AsJSON, "is empty"},
		{"PUT", servertest.RulesPath + "/reviews", " \n", servertest.AsJSON, "is empty"},
		{"PATCH", servertest.RulesPath + "/reviews", "", asMerge, "is empty"},
		{"PATCH", servertest.RulesPath + "/reviews", `{"spec":{"precedence":1e400}}`, asMerge, "1e400"},
	} {
		st := w.Do(c.method, c.path, c.body, c.media).Failure(t)
		if !strings.Contains(st.Message, c.says) || strings.Contains(st.Message, "Go ") || strings.Contains(st.Message, "column 0") {
			t.Errorf("%s %q: %s", c.method, c.body, st.Message)
		}
	}
}
