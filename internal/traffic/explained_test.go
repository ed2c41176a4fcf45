package traffic_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"github.com/pilot-api/pilot-api/envoy/envoytest"
	"github.com/pilot-api/pilot-api/explain"
	"github.com/pilot-api/pilot-api/ir"
)

// asWritten returns a cluster whose endpoint answers with the path that the request has, to
// the letter.
func asWritten(t *testing.T) *ir.Cluster {
	server := envoytest.Serve(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.RequestURI) })
	return envoytest.Cluster("as-written", server.Listener.Addr())
}

// edge returns the configuration of a proxy with the routes at its port 80.
func edge(cluster *ir.Cluster, routes ...*ir.Route) *ir.Config {
	return &ir.Config{
		Clusters: []*ir.Cluster{cluster},
		Listeners: []*ir.Listener{{IP: "127.0.0.1", Port: 80, Bind: true, HTTP: &ir.HTTPListener{Inline: &ir.RouteTable{
			Name: "edge", VirtualHosts: []*ir.VirtualHost{{Name: "h", Domains: []string{"*"}, Routes: routes}},
		}}}},
	}
}

// TestExplainedPaths checks that package explain and an Envoy refuse the same paths, and make
// the same path of every other.
func TestExplainedPaths(t *testing.T) {
	to := asWritten(t)
	cfg := edge(to, &ir.Route{Clusters: []ir.WeightedCluster{{Name: to.Name, Weight: 1}}})
	e, p := envoytest.Start(t, cfg), explain.Proxy{Config: cfg, IP: "127.0.0.1"}
	for _, path := range paths() {
		said := p.Explain(explain.Request{Method: "GET", Scheme: "http", Host: "h", Path: path, Way: explain.Direct, Port: 80, Address: "127.0.0.1"})
		want := "400 "
		if said.Forward != nil {
			want = "200 " + said.Forward.Path
		}
		answer := envoytest.Ask(t, e.DialPort(80), "GET "+path+" HTTP/1.1\r\nHost: h\r\n\r\n")
		if answer.Status != http.StatusOK {
			answer.Body = ""
		}
		if got := fmt.Sprint(answer.Status, " ", answer.Body); got != want {
			t.Errorf("%q: got %s, said was %s", path, got, want)
		}
	}
}

// paths returns paths with each sign, as it is and escaped, and with segments of many kinds.
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

// TestExplainedHeaders checks that package explain and an Envoy agree on conditions for
// headers that a request has several times: one of the values must meet a condition, and no
// value may meet a negated one.
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
	e, p := envoytest.Start(t, cfg), explain.Proxy{Config: cfg, IP: "127.0.0.1"}
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
			head := append([]string{fmt.Sprintf("GET /%d HTTP/1.1", i), "Host: h"}, headers...)
			status := envoytest.Ask(t, e.DialPort(80), strings.Join(head, "\r\n")+"\r\n\r\n").Status
			if said := p.Explain(r).Answer.Status; said != status {
				t.Errorf("%q, %+v: got %d, said was %d", headers, route.Match.Headers, status, said)
			}
		}
	}
}
