package envoy_test

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/pilot-api/pilot-api/envoy/envoytest"
	"github.com/pilot-api/pilot-api/ir"
)

// twoProtocols returns the hosts of a backend that speaks HTTP/1.1 and HTTP/2. It answers
// with the version of the request and the address that the connection came from.
func twoProtocols(t *testing.T) []ir.Endpoint {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s from %s", r.Proto, r.RemoteAddr)
	}))
	server.Config.Protocols = new(http.Protocols)
	server.Config.Protocols.SetHTTP1(true)
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	server.Start()
	t.Cleanup(server.Close)
	return envoytest.Cluster("", server.Listener.Addr()).Hosts
}

// TestConnections checks that an Envoy opens, shares and closes connections as clusters and
// TCP routes say.
func TestConnections(t *testing.T) {
	const short = 100 * time.Millisecond
	soon := short
	hosts := twoProtocols(t)
	cluster := func(name string, of ir.Cluster) *ir.Cluster {
		of.Name, of.Type, of.Hosts = name, ir.StaticHosts, hosts
		return &of
	}
	streamed := func(s ir.Stream) *ir.TCPListener {
		return &ir.TCPListener{Routes: []ir.TCPRoute{{Clusters: ir.Whole("plain"), Stream: s}}}
	}
	var routes []*ir.Route
	for _, name := range []string{"plain", "h2", "same", "once"} {
		routes = append(routes, &ir.Route{Match: ir.Match{Path: "/" + name}, Clusters: all(name)})
	}
	e := envoytest.Start(t, config(nil, append(captured(routes...),
		&ir.Listener{IP: "0.0.0.0", Port: 9000, TCP: streamed(ir.Stream{})},
		&ir.Listener{IP: "0.0.0.0", Port: 9001, TCP: streamed(ir.Stream{IdleTimeout: &soon})},
		&ir.Listener{IP: "0.0.0.0", Port: 9002, TCP: streamed(ir.Stream{MaxDuration: short})},
	),
		cluster("plain", ir.Cluster{Connections: ir.Connections{Keepalive: &ir.Keepalive{Time: time.Minute, Probes: 3}}}),
		cluster("h2", ir.Cluster{HTTP2: true, Connections: ir.Connections{MaxStreams: 1, Ping: &ir.Ping{Interval: time.Second, Timeout: time.Second}}}),
		cluster("same", ir.Cluster{HTTP2: true, Connections: ir.Connections{SameProtocol: true}}),
		cluster("once", ir.Cluster{MaxRequestsPerConnection: 1}),
	))
	for path, want := range map[string]string{"/plain": "HTTP/1.1", "/h2": "HTTP/2.0", "/same": "HTTP/1.1"} {
		one, other := calls(t, e, path), calls(t, e, path)
		if !strings.HasPrefix(one, want+" ") || one != other {
			t.Errorf("%s: called as %q and %q, want %s over one connection", path, one, other, want)
		}
	}
	if one, other := calls(t, e, "/once"), calls(t, e, "/once"); one == other {
		t.Errorf("two requests came over one connection %q, want one each", one)
	}
	for port, closes := range map[int]bool{9000: false, 9001: true, 9002: true} {
		conn := e.Captured(envoytest.ServiceIP, port)
		limit := time.Second
		if closes {
			limit = 30 * time.Second
		}
		if closed := ends(t, conn, limit); closed != closes {
			t.Errorf("port %d: a quiet connection was closed: %v, want %v", port, closed, closes)
		}
	}
}

func calls(t *testing.T, e *envoytest.Envoy, path string) string {
	t.Helper()
	_, body := request(t, e, http.MethodGet, path, nil)
	return body
}

// ends reports whether the other side closes the connection before the limit.
func ends(t *testing.T, conn net.Conn, limit time.Duration) bool {
	t.Helper()
	defer conn.Close()
	if err := conn.SetReadDeadline(time.Now().Add(limit)); err != nil {
		t.Fatal(err)
	}
	_, err := conn.Read(make([]byte, 1))
	return err != nil && !errors.Is(err, os.ErrDeadlineExceeded)
}
