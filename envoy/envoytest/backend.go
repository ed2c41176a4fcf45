package envoytest

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pilot-api/pilot-api/ir"
)

// A Backend is an HTTP server behind a proxy. Its answer to a request has the backend's
// name, the host, the URL and the values of the header x-added, with spaces between them.
type Backend struct {
	Name     string
	Server   *httptest.Server
	Requests atomic.Int64 // how many requests came
}

// StartBackend runs a backend until the test ends.
func StartBackend(t *testing.T, name string) *Backend {
	t.Helper()
	b := &Backend{Name: name}
	b.Server = httptest.NewServer(b)
	t.Cleanup(b.Server.Close)
	return b
}

// ServeHTTP answers with 503 to every other request for a path that begins with /flaky, and
// to /a-fails if the backend's name is a. It never answers to /stuck.
func (b *Backend) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n := b.Requests.Add(1)
	switch r.URL.Path {
	case "/stuck":
		<-r.Context().Done()
	case "/a-fails":
		if b.Name == "a" {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
	case "/flaky", "/flaky-503", "/flaky-429":
		if n%2 == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
	}
	fmt.Fprintf(w, "%s %s %s %s\n", b.Name, r.Host, r.URL, strings.Join(r.Header.Values("X-Added"), "|"))
}

// Cluster returns a cluster with the backend's name and the backend as its endpoint.
func (b *Backend) Cluster() *ir.Cluster { return Cluster(b.Name, b.Server.Listener.Addr()) }

// Port returns the port of the backend at 127.0.0.1.
func (b *Backend) Port() int { return Port(b.Server) }

// Cluster returns a cluster with one endpoint, at a TCP address.
func Cluster(name string, address net.Addr) *ir.Cluster {
	tcp := address.(*net.TCPAddr)
	return &ir.Cluster{
		Name: name, Type: ir.StaticHosts, ConnectTimeout: 30 * time.Second,
		Hosts: []ir.Endpoint{{Host: tcp.IP.String(), Port: tcp.Port}},
	}
}

// Port returns the TCP port of a server.
func Port(s *httptest.Server) int { return s.Listener.Addr().(*net.TCPAddr).Port }

// Serve runs an HTTP server until the test ends.
func Serve(t *testing.T, answer http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(answer)
	t.Cleanup(s.Close)
	return s
}
