package answer_test

import (
	"github.com/pilot-api/pilot-api/server/servertest"

	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/schema"
)

// storeRandom stores objects that gzip cannot shorten much.
func storeRandom(w *servertest.World, n int) {
	w.Helper()
	for i := range n {
		payload := make([]byte, 120<<10)
		_, _ = rand.Read(payload)
		obj, problems := schema.Decode([]byte(servertest.Rule(fmt.Sprintf("random-%d", i), 1, "annotations:", "  payload: "+hex.EncodeToString(payload))), schema.Options{Namespace: "default"})
		if obj == nil {
			w.Fatal(problems)
		}
		if _, err := w.Store.Create(w.Context(), obj); err != nil {
			w.Fatal(err)
		}
	}
}

// TestClientsThatDoNotReadGiveWay checks that clients which ask for large answers and
// do not read them hold up other large answers only for some seconds.
func TestClientsThatDoNotReadGiveWay(t *testing.T) {
	outside.Slow(t)
	for what, ask := range map[string]struct {
		path, accept, coding string
		objects              int
	}{
		"YAML":    {servertest.RulesPath, "application/yaml", "identity", 60},
		"gzip":    {servertest.RulesPath, "application/json", "gzip", 60},
		"changes": {servertest.Changes + "?since=1&limit=1000", "application/json", "identity", 60},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			w, addr, _ := servertest.Serve(t, servertest.Plenty)
			storeRandom(w, ask.objects)
			for range 26 {
				conn, err := net.Dial("tcp", addr)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { conn.Close() })
				_ = conn.(*net.TCPConn).SetReadBuffer(4 << 10)
				fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: localhost\r\nAccept: %s\r\nAccept-Encoding: %s\r\n\r\n", ask.path, ask.accept, ask.coding)
			}
			time.Sleep(7 * time.Second)
			ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
			defer cancel()
			r, err := http.NewRequestWithContext(ctx, "GET", w.URL+ask.path, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Accept", ask.accept)
			r.Header.Set("Accept-Encoding", ask.coding)
			got, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer got.Body.Close()
			if coding := got.Header.Get("Content-Encoding"); got.StatusCode != http.StatusOK || (coding == "gzip") != (ask.coding == "gzip") {
				t.Errorf("an honest client was answered %d in %q", got.StatusCode, coding)
			}
		})
	}
}

// TestWritersThatDoNotReadGiveWay checks that clients which do not read the answer to a
// large write hold up other large writes only for some seconds.
func TestWritersThatDoNotReadGiveWay(t *testing.T) {
	outside.Slow(t)
	w, addr, _ := servertest.Serve(t, servertest.Plenty)
	const objects = 60
	storeRandom(w, objects)
	ops := make([]string, objects)
	for i := range ops {
		ops[i] = servertest.Named("patch", fmt.Sprintf("random-%d", i), `,"patch":{"spec":{"precedence":7}}`)
	}
	body := servertest.Transaction(ops...)
	for range 2 {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		_ = conn.(*net.TCPConn).SetReadBuffer(4 << 10)
		fmt.Fprintf(conn, "POST %s?dryRun=All HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", servertest.Transactions, len(body), body)
	}
	time.Sleep(time.Second)
	begin := time.Now()
	w.Want(http.StatusCreated, "POST", servertest.RulesPath, servertest.LargeRule("large"), servertest.AsYAML)
	if took := time.Since(begin); took < time.Second || took > 20*time.Second {
		t.Errorf("an honest write took %v", took)
	}
	w.Want(http.StatusCreated, "POST", servertest.Transactions+"?dryRun=All", body, servertest.AsJSON)
}
