package server_test

import (
	"errors"
	"io"
	"net"
	"net/http"
	"testing"

	"github.com/pilot-api/pilot-api/server"
)

// TestConnectionsAreBounded: those that say nothing give way to new ones, those
// that are being answered do not.
func TestConnectionsAreBounded(t *testing.T) {
	const most, silent = 8, 50
	w, addr, stop := serve(t, func(o *server.Options) { o.MaxConnections = most })
	watch := w.watch("&allowWatchBookmarks=true")
	conns := make([]net.Conn, silent)
	for i := range conns {
		var err error
		if conns[i], err = net.Dial("tcp", addr); err != nil {
			t.Fatal(err)
		}
		defer conns[i].Close()
	}
	for range most {
		w.do("GET", rulesPath, "")
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
	watch.want("BOOKMARK")
	watch.wantEnd()
}

// TestAFullServerClosesNewConnections when all that it has are in use.
func TestAFullServerClosesNewConnections(t *testing.T) {
	const most = 4
	w, addr, _ := serve(t, func(o *server.Options) { o.MaxConnections = most })
	for range most {
		w.watch("&allowWatchBookmarks=true")
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
