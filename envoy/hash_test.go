package envoy_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pilot-api/pilot-api/envoy/envoytest"
	"github.com/pilot-api/pilot-api/ir"
)

// TestHash checks that requests with the same hashed value go to one endpoint, and that
// requests with different values go to several.
func TestHash(t *testing.T) {
	var hosts []ir.Endpoint
	for i := range 4 {
		hosts = append(hosts, envoytest.StartBackend(t, fmt.Sprintf("b%d", i)).Cluster().Hosts...)
	}
	session := time.Duration(0)
	cookie := &ir.Cookie{Name: "user", Path: "/", TTL: &session, Attributes: []ir.Header{{Name: "SameSite", Value: "Strict"}}}
	var clusters []*ir.Cluster
	var routes []*ir.Route
	hashed := func(name string, balancer ir.LoadBalancer, key ir.HashKey) {
		clusters = append(clusters, &ir.Cluster{
			Name: name, Type: ir.StaticHosts, Hosts: hosts, LoadBalancer: balancer, Hash: &ir.Hash{Key: key, MinimumRing: 1024, Table: 251},
		})
		routes = append(routes, &ir.Route{Match: ir.Match{Path: "/" + name}, Clusters: all(name), Hash: []ir.HashKey{key}})
	}
	hashed("header", ir.RingHash, ir.HashKey{Header: "x-user"})
	hashed("table", ir.Maglev, ir.HashKey{Header: "x-user"})
	hashed("query", ir.RingHash, ir.HashKey{Query: "user"})
	hashed("cookie", ir.Maglev, ir.HashKey{Cookie: cookie})
	hashed("source", ir.RingHash, ir.HashKey{Source: true})
	percent := 100.0
	clusters = append(clusters, &ir.Cluster{
		Name: "warm", Type: ir.StaticHosts, Hosts: hosts, LoadBalancer: ir.LeastRequest, Warmup: &ir.Warmup{Duration: time.Minute, Aggression: 1.5, MinimumPercent: &percent},
	})
	routes = append(routes, &ir.Route{Match: ir.Match{Path: "/warm"}, Clusters: all("warm")})
	e := envoytest.Start(t, config(nil, append(captured(routes...),
		&ir.Listener{IP: "0.0.0.0", Port: 9000, TCP: &ir.TCPListener{Routes: []ir.TCPRoute{{Clusters: ir.Whole("source"), HashSource: true}}}},
	), clusters...))

	const users, times = 16, 3
	for _, name := range []string{"header", "table", "query", "cookie"} {
		met := map[string]bool{}
		for user := range users {
			answered := map[string]bool{}
			for range times {
				resp, body := request(t, e, http.MethodGet, fmt.Sprintf("/%s?user=%d", name, user), http.Header{
					"X-User": {fmt.Sprint(user)}, "Cookie": {fmt.Sprintf("user=%d", user)},
				})
				if resp.Header.Get("Set-Cookie") != "" {
					t.Errorf("%s: a caller with a cookie is given another", name)
				}
				answered[strings.Fields(body)[0]] = true
				met[strings.Fields(body)[0]] = true
			}
			if len(answered) != 1 {
				t.Errorf("%s: user %d met %v, want one", name, user, answered)
			}
		}
		if len(met) < 2 {
			t.Errorf("%s: all users met %v", name, met)
		}
	}
	if resp, _ := request(t, e, http.MethodGet, "/cookie", nil); !strings.Contains(resp.Header.Get("Set-Cookie"), "SameSite=Strict") {
		t.Errorf("a caller without a cookie is given %q", resp.Header.Get("Set-Cookie"))
	}
	from := map[string]bool{}
	for range users {
		_, body := request(t, e, http.MethodGet, "/source", nil)
		from["http "+strings.Fields(body)[0]] = true
		answer := envoytest.Exchange(t, e.Captured(envoytest.ServiceIP, 9000), "GET / HTTP/1.1\r\nHost: svc\r\nConnection: close\r\n\r\n")
		_, body, _ = strings.Cut(answer, "\r\n\r\n")
		from["tcp "+strings.Fields(body)[0]] = true
	}
	if len(from) != 2 {
		t.Errorf("one caller met %v, want one for HTTP and one for TCP", from)
	}
	if _, body := request(t, e, http.MethodGet, "/warm", nil); !strings.HasPrefix(body, "b") {
		t.Errorf("a cluster that warms up answers %q", body)
	}
}
