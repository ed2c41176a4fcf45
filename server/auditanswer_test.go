package server_test

import (
	"github.com/pilot-api/pilot-api/server/servertest"

	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pilot-api/pilot-api/security/audit"
	"github.com/pilot-api/pilot-api/server"
)

// TestAuditHasTheCodeOfTheAnswer checks that each event has the code that the client got, whatever
// made the answer, and that refusals have an event wherever they happen.
func TestAuditHasTheCodeOfTheAnswer(t *testing.T) {
	for _, strict := range []bool{false, true} {
		log, events := auditLog(t, audit.Options{File: filepath.Join(t.TempDir(), "audit.log"), Strict: strict})
		w, addr, _ := servertest.Serve(t, func(o *server.Options) {
			o.Audit = log
			o.Store = broken{Interface: o.Store}
		})
		_, port, _ := strings.Cut(addr, ":")
		type sent struct {
			code int
			verb string
		}
		want := map[string]sent{}
		for id, c := range map[string]struct {
			code               int
			method, path, body string
			headers            []string
			verb               string // "" for no event
		}{
			"panic":               {500, "POST", servertest.RulesPath, servertest.Rule("a", 100), []string{servertest.AsYAML}, "create"},
			"missing":             {404, "DELETE", servertest.RulesPath + "/a", "", nil, "delete"},
			"name of another":     {403, "POST", servertest.RulesPath, servertest.Rule("a", 100), []string{servertest.AsYAML, "Host: evil.example:" + port}, "create"},
			"read as another":     {403, "GET", servertest.RulesPath, "", []string{"Host: evil.example:" + port}, "list"},
			"site of another":     {403, "POST", servertest.RulesPath, servertest.Rule("a", 100), []string{servertest.AsYAML, "Origin: http://evil.example"}, "create"},
			"deletion for a page": {403, "DELETE", servertest.RulesPath + "/a", "", []string{"Sec-Fetch-Site: cross-site"}, "delete"},
			"no path":             {404, "POST", "/nothing", "", nil, ""},
			"no method":           {405, "POST", servertest.RulesPath + "/a", "", nil, ""},
			"a read":              {200, "GET", servertest.RulesPath, "", nil, ""},
			"health":              {403, "GET", "/healthz", "", []string{"Host: evil.example:" + port}, ""},
			"a poll":              {403, "POST", "/cache_stats_delete", "", []string{"Origin: http://evil.example"}, ""},
		} {
			id = strings.ReplaceAll(id, " ", "-")
			w.Want(c.code, c.method, c.path, c.body, append(c.headers, "X-Request-Id: "+id)...)
			if c.verb != "" {
				want[id] = sent{c.code, c.verb}
			}
		}
		got := map[string]sent{}
		for _, e := range events() {
			if e.Stage == audit.StageComplete {
				got[e.ID] = sent{e.Code, e.Verb}
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("strict: %v: the events are\n%v, want\n%v", strict, got, want)
		}
	}
}

// TestWatchBeginsWhenItIsWrittenDown checks that a strict log has the event of a watch before its
// answer begins, also if the watch has nothing to say.
func TestWatchBeginsWhenItIsWrittenDown(t *testing.T) {
	policy, err := audit.ParsePolicy([]byte("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{servertest.RulesPath + "?watch=true", "/apis/registry.istio.io/v1/watch?kinds=RouteRule"} {
		file := filepath.Join(t.TempDir(), "audit.log")
		log, _ := auditLog(t, audit.Options{File: file, Strict: true, Policy: policy})
		w := servertest.Start(t, func(o *server.Options) { o.Audit = log })
		resp, err := http.Get(w.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(file)
		if err != nil || resp.StatusCode != http.StatusOK || !strings.Contains(string(text), `"code":200`) {
			t.Errorf("%s: %d, the log has %q, %v", path, resp.StatusCode, text, err)
		}
		resp.Body.Close()
		if _, err := os.Stat("/dev/full"); err != nil {
			t.Skip("there is no /dev/full here")
		}
		full, _ := auditLog(t, audit.Options{File: "/dev/full", Strict: true, Policy: policy})
		w = servertest.Start(t, func(o *server.Options) { o.Audit = full })
		w.Want(http.StatusInsufficientStorage, "GET", path, "")
	}
}
