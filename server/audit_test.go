package server_test

import (
	"github.com/pilot-api/pilot-api/server/servertest"

	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pilot-api/pilot-api/security/audit"
	"github.com/pilot-api/pilot-api/server"
)

// auditedWorld is a server with roles and an audit log in a file.
func auditedWorld(t *testing.T, file string, strict bool, more ...func(*server.Options)) (w *servertest.World, events func() []audit.Event) {
	t.Helper()
	log, events := auditLog(t, audit.Options{File: file, Strict: strict})
	return governed(t, append(more, func(o *server.Options) { o.Audit = log })...), events
}

// auditLog returns a log in a file. events ends it, and returns what is in it.
func auditLog(t *testing.T, opts audit.Options) (log *audit.Log, events func() []audit.Event) {
	t.Helper()
	opts.Log = slog.New(slog.DiscardHandler)
	log, err := audit.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- log.Run(ctx) }()
	stopped := false
	end := func() {
		if !stopped {
			stopped = true
			stop()
			<-ended
		}
	}
	t.Cleanup(end)
	return log, func() (all []audit.Event) {
		end()
		text, err := os.ReadFile(opts.File)
		if err != nil {
			t.Fatal(err)
		}
		for line := range bytes.Lines(text) {
			var e audit.Event
			if err := json.Unmarshal(line, &e); err != nil {
				t.Fatalf("%v: %q", err, line)
			}
			all = append(all, e)
		}
		return all
	}
}

// TestAuditSaysWhoDidWhat checks the events of writes and refusals, and that reads have none.
func TestAuditSaysWhoDidWhat(t *testing.T) {
	w, events := auditedWorld(t, filepath.Join(t.TempDir(), "audit.log"), false)
	begin := "X-Request-Id: "
	w.Want(201, "POST", rulesIn("shop"), ruleOf("shop", "a"), ed, servertest.AsJSON, begin+"create")
	w.Want(200, "PATCH", rulesIn("shop")+"/a", `{"spec":{"precedence":3}}`, ed, "Content-Type: application/merge-patch+json", begin+"patch")
	w.Want(403, "GET", rulesIn("bank"), "", ed, begin+"refused")
	w.Want(401, "GET", rulesIn("bank"), "", "Authorization: Bearer wrong-token-of-nobody", begin+"nobody")
	w.Want(200, "GET", rulesIn("shop"), "", ed, begin+"read")
	w.Want(201, "POST", servertest.Transactions, servertest.Transaction(`{"verb":"create","object":`+ruleOf("shop", "b")+`}`, `{"verb":"create","object":`+ruleOf("shop", "c")+`}`), ed, servertest.AsJSON, begin+"both")
	w.Want(200, "DELETE", rulesIn("shop")+"/b", "", root, "Impersonate-User: ed", begin+"as-ed", "User-Agent: agent \"x\"")
	w.Want(201, "POST", rulesIn("shop")+"?dryRun=All", ruleOf("shop", "d"), ed, servertest.AsJSON, begin+"tried")
	byID := map[string]audit.Event{}
	for _, e := range events() {
		byID[e.ID] = e
	}
	if _, there := byID["read"]; there {
		t.Error("a read is written down")
	}
	e := byID["create"]
	if e.User != "ed" || e.Verb != "create" || e.Resource != "routerules" || e.Namespace != "shop" || e.Code != 201 || e.Allowed == nil || !*e.Allowed ||
		!strings.Contains(e.Reason, `RoleBinding "eds/shop"`) || len(e.Changes) != 1 || e.Changes[0].Object != "RouteRule shop/a" || e.Changes[0].After == "" || e.Source != "127.0.0.1" || e.By != "token-file" {
		t.Errorf("create: %+v", e)
	}
	if p := byID["patch"]; p.Verb != "patch" || p.Name != "a" || len(p.Changes) != 1 || p.Changes[0].Before != e.Changes[0].After || p.Changes[0].After == p.Changes[0].Before {
		t.Errorf("patch: %+v", p)
	}
	if r := byID["refused"]; r.Code != 403 || r.Verb != "list" || r.Namespace != "bank" || r.Allowed == nil || *r.Allowed {
		t.Errorf("refused: %+v", r)
	}
	if n := byID["nobody"]; n.Code != 401 || n.User != "" {
		t.Errorf("nobody: %+v", n)
	}
	if b := byID["both"]; len(b.Changes) != 2 || b.Path != servertest.Transactions {
		t.Errorf("transaction: %+v", b)
	}
	if a := byID["as-ed"]; a.User != "ed" || a.Impersonator != "root" || a.UserAgent != `agent "x"` {
		t.Errorf("impersonated: %+v", a)
	}
	if d := byID["tried"]; !d.DryRun || len(d.Changes) != 0 {
		t.Errorf("dry run: %+v", d)
	}
}

// TestFullAuditDiskRefusesWrites checks that a strict log with a full disk lets nothing be
// written, and that the client learns why.
func TestFullAuditDiskRefusesWrites(t *testing.T) {
	file := filepath.Join(t.TempDir(), "audit.log")
	w, events := auditedWorld(t, file, true)
	w.Want(201, "POST", rulesIn("shop"), ruleOf("shop", "a"), ed, servertest.AsJSON)
	all := events()
	if n := len(all); n < 2 || all[n-2].Stage != audit.StageReceived || all[n-1].Stage != audit.StageComplete || all[n-1].ID != all[n-2].ID {
		t.Errorf("%+v", all)
	}
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("there is no /dev/full here")
	}
	full, err := audit.New(audit.Options{File: "/dev/full", Strict: true, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- full.Run(ctx) }()
	t.Cleanup(func() { stop(); <-ended })
	w = servertest.Start(t, func(o *server.Options) { o.Audit = full })
	a := w.Do("POST", rulesIn("default"), ruleOf("default", "a"), servertest.AsJSON)
	if a.StatusCode != http.StatusInsufficientStorage || !strings.Contains(a.Text, "nothing was changed: the audit log cannot be written") {
		t.Errorf("%d %s", a.StatusCode, a.Text)
	}
	w.Want(404, "GET", rulesIn("default")+"/a", "")
	w.Want(200, "GET", rulesIn("default"), "")
}
