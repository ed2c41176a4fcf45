package server_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pilot-api/pilot-api/server"
)

// TestURLsThatSayTooLittle checks that empty or unreadable parts of a URL do not
// mean "all" or "the default".
func TestURLsThatSayTooLittle(t *testing.T) {
	w := start(t)
	w.create("reviews")
	nowhere := strings.Replace(rulesPath, "/default/", "//", 1)
	for _, c := range []struct {
		method, path string
		code         int
	}{
		{"GET", nowhere, 404},
		{"POST", nowhere, 404},
		{"GET", nowhere + "/reviews", 404},
		{"DELETE", nowhere + "/reviews", 404},
		{"GET", rulesPath + "/", 404},
		{"DELETE", rulesPath + "/", 404},
		{"GET", rulesPath + "?%zz", 400},
		{"GET", rulesPath + "?limit=1;labelSelector=a", 400},
		{"POST", rulesPath + "?dryRun=%zz", 400},
	} {
		body := ""
		if c.method == http.MethodPost {
			body = rule("ratings", 100)
		}
		st := w.want(c.code, c.method, c.path, body, asYAML).status(t)
		path, query, _ := strings.Cut(c.path, "?")
		if said := st.Message; !strings.Contains(said, path) && !strings.Contains(said, query) {
			t.Errorf("%s %s: %s", c.method, c.path, said)
		}
	}
}

// TestRevisionThatNeverComes checks that a read waits for its revision, but not as
// long as for everything else.
func TestRevisionThatNeverComes(t *testing.T) {
	w := start(t, func(o *server.Options) {
		o.RevisionTimeout, o.RequestTimeout = 10*time.Millisecond, time.Hour
	})
	w.create("reviews")
	for _, path := range []string{rulesPath, rulesPath + "/reviews"} {
		st := w.want(http.StatusGatewayTimeout, "GET", path+"?resourceVersion=999", "").status(t)
		if !strings.Contains(st.Message, "999") || st.Details.RetryAfterSeconds == 0 {
			t.Errorf("got %q, %+v", st.Message, st.Details)
		}
	}
}

// TestWhatIsNotJSON checks the errors for unreadable bodies.
func TestWhatIsNotJSON(t *testing.T) {
	w := start(t)
	w.create("reviews")
	const asMerge = "Content-Type: application/merge-patch+json"
	for _, c := range []struct{ method, path, body, media, says string }{
		{"POST", rulesPath, "", asJSON, "is empty"},
		{"PUT", rulesPath + "/reviews", " \n", asJSON, "is empty"},
		{"PATCH", rulesPath + "/reviews", "", asMerge, "is empty"},
		{"PATCH", rulesPath + "/reviews", `{"spec":{"precedence":1e400}}`, asMerge, "1e400"},
	} {
		st := w.do(c.method, c.path, c.body, c.media).status(t)
		if !strings.Contains(st.Message, c.says) || strings.Contains(st.Message, "Go ") || strings.Contains(st.Message, "column 0") {
			t.Errorf("%s %q: %s", c.method, c.body, st.Message)
		}
	}
}
