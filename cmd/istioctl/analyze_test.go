package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestAnalyzeTellsWhatIsLeftOut: an answer that is not all of it does not look as if
// nothing were lost.
func TestAnalyzeTellsWhatIsLeftOut(t *testing.T) {
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("api") != "v1" {
			t.Errorf("asks %s", r.URL)
		}
		_, _ = io.WriteString(w, `{"revision":7,"problems":[],"notLookedAt":3}`)
	}))
	defer api.Close()
	var out, errs bytes.Buffer
	c := &CLI{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs, Getenv: env(api.URL)}
	if code := c.Run(t.Context(), []string{"analyze", "--v1"}); code != exitDone {
		t.Errorf("exit %d", code)
	}
	const want = "Warning: not looked at for what the v1 API loses: 3 more configurations\nNo problems found at revision 7.\n"
	if errs.String() != want || out.Len() > 0 {
		t.Errorf("says %q and %q, want %q", &out, &errs, want)
	}
}
