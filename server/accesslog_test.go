package server_test

import (
	"github.com/pilot-api/pilot-api/server/servertest"

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
	w := servertest.Start(t, func(o *server.Options) { o.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	for _, c := range []struct {
		method, path string
		code         int
		logged       bool
	}{
		{"POST", servertest.RulesPath, http.StatusCreated, true},
		{"GET", servertest.RulesPath + "/a", http.StatusOK, false},
		{"GET", servertest.RulesPath, http.StatusOK, false},
		{"GET", servertest.RulesPath + "/b", http.StatusNotFound, true},
		{"DELETE", servertest.RulesPath + "/a", http.StatusOK, true},
		{"GET", "/healthz", http.StatusOK, false},
	} {
		log.Reset()
		body := ""
		if c.method == "POST" {
			body = servertest.Rule("a", 100)
		}
		id := w.Want(c.code, c.method, c.path, body, servertest.AsYAML).Header.Get("X-Request-Id")
		if id == "" || strings.Contains(log.String(), id) != c.logged {
			t.Errorf("%s %s with id %q: logged %q", c.method, c.path, id, log.String())
		}
	}
}
