package envoy_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/pilot-api/pilot-api/envoy/envoytest"
	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/ir"
)

// upgrading returns a cluster of the name echo. Its endpoint upgrades a connection to a
// WebSocket if it is asked to, and then sends back what it receives.
func upgrading(t *testing.T) *ir.Cluster {
	server := envoytest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != "websocket" {
			return
		}
		conn, stream, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		fmt.Fprint(conn, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
		_, _ = io.Copy(conn, stream)
	})
	return envoytest.Cluster("echo", server.Listener.Addr())
}

// TestUpgrades checks that a connection becomes a WebSocket unless the route refuses that, and
// that it then stays open as long as both sides want.
func TestUpgrades(t *testing.T) {
	outside.Slow(t)
	path := func(p string, r ir.Route) *ir.Route {
		r.Match.Path, r.Clusters = p, all("echo")
		return &r
	}
	const limit = 100 * time.Millisecond
	e := envoytest.Start(t, config(nil, captured(
		path("/allowed", ir.Route{WebSocket: ir.UpgradeAllowed}),
		path("/refused", ir.Route{WebSocket: ir.UpgradeRefused}),
		path("/retried", ir.Route{Retry: &ir.Retry{Attempts: 2}}),
		path("/timed", ir.Route{Timeout: limit}),
		path("/tried", ir.Route{Retry: &ir.Retry{Attempts: 2, PerTryTimeout: limit}}),
		&ir.Route{Match: ir.Match{Path: "/closed"}, Response: ir.Unavailable()},
		path("", ir.Route{}),
	), upgrading(t)))
	for path, want := range map[string]int{
		"/": 101, "/allowed": 101, "/refused": 403, "/retried": 101, "/timed": 101, "/tried": 101, "/closed": 503,
	} {
		conn, stream, got := upgrade(t, e, path)
		if got != want {
			t.Errorf("%s: %d, want %d", path, got, want)
		}
		if got == http.StatusSwitchingProtocols {
			talk(t, conn, stream, path)
		}
		if path == "/timed" || path == "/tried" {
			outlives(t, conn, stream, path)
		}
	}
}

// outlives checks that a WebSocket is still open after the time limit of its route, which is
// one for the answer that upgrades the connection.
func outlives(t *testing.T, conn net.Conn, stream *bufio.Reader, path string) {
	t.Helper()
	if err := conn.SetDeadline(time.Now().Add(time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := stream.ReadByte(); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%s: the stream ended: %v", path, err)
	}
	if err := conn.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	talk(t, conn, stream, path)
}

// upgrade asks for a WebSocket, and returns the connection and the status of the answer.
func upgrade(t *testing.T, e *envoytest.Envoy, path string) (net.Conn, *bufio.Reader, int) {
	t.Helper()
	conn := e.Captured(envoytest.ServiceIP, envoytest.ServicePort)
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: svc\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n", path)
	stream := bufio.NewReader(conn)
	resp, err := http.ReadResponse(stream, nil)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return conn, stream, resp.StatusCode
}

// talk checks that lines that are not HTTP come back.
func talk(t *testing.T, conn net.Conn, stream *bufio.Reader, path string) {
	t.Helper()
	for _, line := range []string{"one\n", "two\n"} {
		fmt.Fprint(conn, line)
		if got, err := stream.ReadString('\n'); got != line {
			t.Errorf("%s: sent %q, got %q, %v", path, line, got, err)
		}
	}
}
