package server_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/pilot-api/pilot-api/server"
)

// TestAccessLog checks that the default level logs changes and failures, but not
// reads.
func TestAccessLog(t *testing.T) {
	var log bytes.Buffer
	w := start(t, func(o *server.Options) { o.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	for _, c := range []struct {
		method, path string
		code         int
		logged       bool
	}{
		{"POST", rulesPath, http.StatusCreated, true},
		{"GET", rulesPath + "/a", http.StatusOK, false},
		{"GET", rulesPath, http.StatusOK, false},
		{"GET", rulesPath + "/b", http.StatusNotFound, true},
		{"DELETE", rulesPath + "/a", http.StatusOK, true},
		{"GET", "/healthz", http.StatusOK, false},
	} {
		log.Reset()
		body := ""
		if c.method == "POST" {
			body = rule("a", 100)
		}
		id := w.want(c.code, c.method, c.path, body, asYAML).Header.Get("X-Request-Id")
		if id == "" || strings.Contains(log.String(), id) != c.logged {
			t.Errorf("%s %s with id %q: logged %q", c.method, c.path, id, log.String())
		}
	}
}
