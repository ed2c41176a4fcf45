package envoy_test

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"github.com/pilot-api/pilot-api/envoy/envoytest"
	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/ir"
)

// TestPortsAreNotShared checks that an Envoy does not start with the port of another one. If
// they shared it, each would get some of the other's connections.
func TestPortsAreNotShared(t *testing.T) {
	cfg := &ir.Config{Listeners: []*ir.Listener{{IP: "127.0.0.1", Port: 15002, Bind: true, HTTP: &ir.HTTPListener{Inline: &ir.RouteTable{Name: "inline"}}}}}
	first := envoytest.Start(t, cfg)
	second := envoytest.ParseBootstrap(t, envoytest.Standalone(t, envoytest.Encode(cfg)))
	second.Admin.Address.GetSocketAddress().PortSpecifier = envoytest.FreePort
	for _, port := range first.Ports {
		second.StaticResources.Listeners[0].Address.GetSocketAddress().PortSpecifier = &corev3.SocketAddress_PortValue{PortValue: uint32(port)}
	}
	config := filepath.Join(t.TempDir(), "envoy.json")
	if err := os.WriteFile(config, envoytest.BootstrapText(t, second), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second) // An Envoy that starts does not end.
	defer cancel()
	out, err := exec.CommandContext(ctx, outside.Tool(t, "envoy"), "-c", config,
		"--concurrency", "1", "--disable-hot-restart", "-l", "warning").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "Address already in use") {
		t.Errorf("a second Envoy on the same port: %v\n%s", err, out)
	}
}

// TestWorkersShareConnections checks that each worker of an Envoy gets as many connections
// as the others, although they share one queue.
func TestWorkersShareConnections(t *testing.T) {
	const workers, each = 3, 10
	e := envoytest.StartWorkers(t, &ir.Config{Listeners: []*ir.Listener{{
		IP: "127.0.0.1", Port: 15002, Bind: true, HTTP: &ir.HTTPListener{Inline: &ir.RouteTable{Name: "inline"}},
	}}}, workers)
	for range workers * each {
		conn := e.DialPort(15002)
		defer conn.Close()
		// The answer shows that a worker has the connection.
		fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: a.example\r\n\r\n")
		if _, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil {
			t.Fatal(err)
		}
	}
	stats := e.AdminText("/stats?filter=" + url.QueryEscape(`^listener\.127.*worker_\d+\.downstream_cx_active`))
	if got := strings.Count(stats, fmt.Sprintf(": %d\n", each)); got != workers {
		t.Errorf("%d of %d workers have %d connections:\n%s", got, workers, each, stats)
	}
}
