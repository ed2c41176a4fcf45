package server_test

import (
	"github.com/pilot-api/pilot-api/server/servertest"

	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"

	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/server"
)

// TestConnectionsAreBounded checks that silent connections give way to new ones,
// and that those being answered do not.
func TestConnectionsAreBounded(t *testing.T) {
	outside.Slow(t)
	const most, silent = 8, 50
	w, addr, stop := servertest.Serve(t, func(o *server.Options) { o.MaxConnections = most })
	watch := w.Watch("&allowWatchBookmarks=true")
	conns := make([]net.Conn, silent)
	for i := range conns {
		var err error
		if conns[i], err = net.Dial("tcp", addr); err != nil {
			t.Fatal(err)
		}
		defer conns[i].Close()
	}
	for range most {
		w.Do("GET", servertest.RulesPath, "")
		http.DefaultClient.CloseIdleConnections()
	}
	for i, conn := range conns[:silent-most] {
		if _, err := conn.Read(make([]byte, 1)); err == nil || errors.Is(err, net.ErrClosed) {
			t.Fatalf("connection %d: read %v", i, err)
		}
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	watch.Want("BOOKMARK")
	watch.WantEnd()
}

// TestAFullServerClosesNewConnections checks the case that all connections are in
// use.
func TestAFullServerClosesNewConnections(t *testing.T) {
	const most = 4
	w, addr, _ := servertest.Serve(t, func(o *server.Options) { o.MaxConnections, o.MaxWatches = most, most })
	for range most {
		w.Watch("&allowWatchBookmarks=true")
	}
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.ReadAll(conn); errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
}

// TestTricklingRequestsGiveWay checks that clients which send the rest of a request
// byte by byte keep nobody else out, however many they are and whichever part is
// slow.
func TestTricklingRequestsGiveWay(t *testing.T) {
	outside.Slow(t)
	const most, trickling = 8, 50
	const head = "POST " + servertest.RulesPath + " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/yaml\r\n"
	for what, begin := range map[string]string{
		"head":         head,
		"body":         head + "Content-Length: 1000\r\n\r\na",
		"chunks":       head + "Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n",
		"unread body":  "GET " + servertest.RulesPath + " HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\na",
		"refused body": "PUT /nowhere HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\na",
	} {
		t.Run(what, func(t *testing.T) {
			w, addr, stop := servertest.Serve(t, func(o *server.Options) { o.MaxConnections = most })
			conns := make([]net.Conn, trickling)
			for i := range conns {
				var err error
				if conns[i], err = net.Dial("tcp", addr); err != nil {
					t.Fatal(err)
				}
				defer conns[i].Close()
				if _, err := io.WriteString(conns[i], begin); err != nil {
					t.Fatal(err)
				}
			}
			for i := range most {
				w.Create(fmt.Sprint("honest-", i))
				http.DefaultClient.CloseIdleConnections()
			}
			for i, conn := range conns[:trickling-most] {
				if _, err := io.Copy(io.Discard, conn); errors.Is(err, net.ErrClosed) {
					t.Fatalf("connection %d: %v", i, err)
				}
			}
			for _, conn := range conns {
				_ = conn.Close()
			}
			if err := stop(); err != nil {
				t.Error(err)
			}
		})
	}
}
