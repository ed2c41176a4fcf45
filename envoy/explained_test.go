package envoy_test

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/pilot-api/pilot-api/explain"
	"github.com/pilot-api/pilot-api/ir"
)

// asWritten answers with the path that it was asked for, to the letter.
func asWritten(t *testing.T) *ir.Cluster {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.RequestURI)
	}))
	t.Cleanup(server.Close)
	address := server.Listener.Addr().(*net.TCPAddr)
	return &ir.Cluster{
		Name: "as-written", Type: ir.StaticHosts, ConnectTimeout: 30 * time.Second,
		Hosts: []ir.Endpoint{{Host: address.IP.String(), Port: address.Port}},
	}
}

// edge is a proxy with one open port and these routes.
func edge(cluster *ir.Cluster, routes ...*ir.Route) *ir.Config {
	return &ir.Config{
		Clusters: []*ir.Cluster{cluster},
		Listeners: []*ir.Listener{{IP: "127.0.0.1", Port: 80, Bind: true, HTTP: &ir.HTTPListener{Inline: &ir.RouteTable{
			Name: "edge", VirtualHosts: []*ir.VirtualHost{{Name: "h", Domains: []string{"*"}, Routes: routes}},
		}}}},
	}
}

// answerTo asks the open port with the very head.
func (e *liveEnvoy) answerTo(head string) (status int, body string) {
	e.t.Helper()
	var listener string
	for listener = range e.ports {
	}
	conn := e.dial(listener)
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		e.t.Fatal(err)
	}
	if _, err := io.WriteString(conn, head+"\r\n\r\n"); err != nil {
		e.t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		e.t.Fatalf("%q: %v", head, err)
	}
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		e.t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// TestExplainedPaths: what routes and clusters get to see of a path is what is said.
func TestExplainedPaths(t *testing.T) {
	to := asWritten(t)
	cfg := edge(to, &ir.Route{Clusters: []ir.WeightedCluster{{Name: to.Name, Weight: 1}}})
	e, p := startEnvoy(t, cfg), explain.Proxy{Config: cfg, IP: "127.0.0.1"}
	for _, path := range paths() {
		said := p.Explain(explain.Request{Method: "GET", Scheme: "http", Host: "h", Path: path, Way: explain.Direct, Port: 80, Address: "127.0.0.1"})
		want := "400 "
		if said.Forward != nil {
			want = "200 " + said.Forward.Path
		}
		status, body := e.answerTo("GET " + path + " HTTP/1.1\r\nHost: h")
		if status != http.StatusOK {
			body = ""
		}
		if got := fmt.Sprint(status, " ", body); got != want {
			t.Errorf("%q: got %s, said was %s", path, got, want)
		}
	}
}

// paths have each sign, as it is and escaped, and segments of many kinds.
func paths() []string {
	var out []string
	for c := '!'; c <= '~'; c++ {
		if c != '#' && c != '%' { // The one is refused, the other begins an escape.
			out = append(out, fmt.Sprintf("/a%cb?q=%c", c, c))
		}
	}
	for c := range 256 {
		out = append(out, fmt.Sprintf("/a%%%02Xb", c), fmt.Sprintf("/%%%02x", c))
	}
	random := rand.New(rand.NewPCG(1, 2))
	segments := []string{"", ".", "..", "...", "%2e", "%2E.", ".%2e", "a", "a.", ".a", "..a", "%2f", "%5c..", "b%2e", "{x}"}
	for range 300 {
		path := ""
		for range 1 + random.IntN(5) {
			path += []string{"/", "/", `\`}[random.IntN(3)] + segments[random.IntN(len(segments))]
		}
		out = append(out, "/"+path)
	}
	return out
}

// TestExplainedHeaders: of a header that is there twice, one value must be as a
// condition has it, and none as one has it that must not hold.
func TestExplainedHeaders(t *testing.T) {
	to := asWritten(t)
	conditions := []ir.HeaderMatch{
		{Name: "x", Exact: "a"}, {Name: "x", Exact: "a,b"}, {Name: "x", Prefix: "a"}, {Name: "x", Prefix: "b"},
		{Name: "x", Regex: "b"}, {Name: "x", Regex: ".*b"}, {Name: "x", Present: true},
	}
	var routes []*ir.Route
	for _, not := range []bool{false, true} {
		for _, c := range conditions {
			c.Not = not
			routes = append(routes, &ir.Route{
				Match:    ir.Match{Path: fmt.Sprintf("/%d", len(routes)), Headers: []ir.HeaderMatch{c}},
				Response: &ir.DirectResponse{Status: 201},
			})
		}
	}
	cfg := edge(to, routes...)
	e, p := startEnvoy(t, cfg), explain.Proxy{Config: cfg, IP: "127.0.0.1"}
	for _, headers := range [][]string{nil, {"x: a"}, {"x: a", "X: b"}, {"x: b", "x: a"}, {"x: a", "y: c", "x: b", "x:"}} {
		for i, route := range routes {
			parsed, err := explain.ParseHeaders(headers)
			if err != nil {
				t.Fatal(err)
			}
			r, err := explain.NewRequest("GET", "http://127.0.0.1"+route.Match.Path, parsed)
			if err != nil {
				t.Fatal(err)
			}
			r.Way, r.Address = explain.Direct, "127.0.0.1"
			status, _ := e.answerTo(strings.Join(append([]string{fmt.Sprintf("GET /%d HTTP/1.1", i), "Host: h"}, headers...), "\r\n"))
			if said := p.Explain(r).Answer.Status; said != status {
				t.Errorf("%q, %+v: got %d, said was %d", headers, route.Match.Headers, status, said)
			}
		}
	}
}
