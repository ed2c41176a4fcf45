package envoy_test

import (
	"bufio"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pilot-api/pilot-api/envoy/envoytest"
	"github.com/pilot-api/pilot-api/ir"
)

// TestBehaviour checks that a real Envoy does with requests what the IR says.
func TestBehaviour(t *testing.T) {
	a, b := envoytest.StartBackend(t, "a"), envoytest.StartBackend(t, "b")
	e := envoytest.Start(t, behaviourConfig(a, b))
	for _, tc := range []struct {
		name, method, url string
		header            http.Header
		status            int
		want              string // in the body, or the Location of a redirect
	}{
		{name: "default", url: "/x?q=1", status: 200, want: "a svc /x?q=1 "},
		{name: "redirect drops the query", url: "/redirect?q=1", status: 301, want: "http://b.example/new"},
		{name: "redirect of host keeps it", url: "/redirect-host?q=1", status: 301, want: "http://b.example/redirect-host?q=1"},
		{name: "rewrite", url: "/rewrite/x?q=1", status: 200, want: "a c.example /other/x?q=1 "},
		{name: "rewrite of a regex", url: "/items/7?q=1", status: 200, want: "a svc /item?q=1 "},
		{name: "regex takes the whole path", url: "/items/7/8", status: 200, want: "a svc /items/7/8 "},
		{name: "header prefix", url: "/h", header: http.Header{"X-Animal": {"dog.cat"}}, status: 200, want: "b svc /h "},
		{name: "header prefix is no regex", url: "/h", header: http.Header{"X-Animal": {"dogscat"}}, status: 200, want: "a svc /h "},
		{name: "header present", url: "/h", header: http.Header{"X-Present": {""}}, status: 200, want: "b svc /h "},
		{name: "header empty", url: "/h", header: http.Header{"X-Empty": {""}}, status: 200, want: "b svc /h "},
		{name: "header not empty", url: "/h", header: http.Header{"X-Empty": {"1"}}, status: 200, want: "a svc /h "},
		{name: "prefix of any case", url: "/CASE/x", status: 200, want: "a svc /lower/x "},
		{name: "query", url: "/h?page=1&id=22", status: 200, want: "b svc /h?page=1&id=22 "},
		{name: "query without a match", url: "/h?page=1&id=x", status: 200, want: "a svc /h?page=1&id=x "},
		{name: "query present", url: "/h?debug", status: 200, want: "b svc /h?debug "},
		{name: "append", url: "/append", header: http.Header{"X-Added": {"own"}}, status: 200, want: "a svc /append own|50%"},
		{name: "set", url: "/set", header: http.Header{"X-Added": {"own"}}, status: 200, want: "a svc /set new"},
		{name: "set to nothing", url: "/set-empty", header: http.Header{"X-Added": {"own"}}, status: 200, want: "a svc /set-empty \n"},
		{name: "remove", url: "/remove", header: http.Header{"X-Added": {"secret"}}, status: 200, want: "a svc /remove \n"},
		{name: "no variable", url: "/variable", header: http.Header{"X-Token": {"secret"}}, status: 200, want: "a svc /variable %REQ(x-token)%\n"},
		{name: "format", url: "/format?q=1", header: http.Header{"X-Token": {"secret"}}, status: 200, want: "a svc /format?q=1 50% secret GET\n"},
		{name: "remove for one destination", url: "/share", header: http.Header{"X-Added": {"secret"}}, status: 200, want: "a svc /share \n"},
		{name: "direct response", url: "/admin", status: 403, want: "no entry"},
		{name: "direct response, by a detour", url: "/x/../admin", status: 403, want: "no entry"},
		{name: "direct response, by a dot", url: "/./admin", status: 403, want: "no entry"},
		{name: "direct response, by escapes", url: "/%61dmin", status: 403, want: "no entry"},
		{name: "escaped slash is a name's", url: "/items%2F7", status: 200, want: "a svc /items%2F7 "},
		{name: "closed", url: "/closed", status: 503},
		{name: "redirect with scheme, port and code", url: "/see-other?q=1", status: 303, want: "https://svc:8443/see-other?q=1"},
		{name: "redirect of a prefix", url: "/gone/x?q=1", status: 301, want: "http://svc/come/x?q=1"},
		{name: "rewrite by regex", url: "/regex-7?q=1", status: 200, want: "a svc /regex/7?q=1 "},
		{name: "without a header", url: "/without", status: 503},
		{name: "without a header that is there", url: "/without", header: http.Header{"X-Token": {""}}, status: 200, want: "a svc /without "},
		{name: "unless a value, no header", url: "/unless", status: 503},
		{name: "unless a value, another one", url: "/unless", header: http.Header{"X-Token": {"bad"}}, status: 503},
		{name: "unless a value", url: "/unless", header: http.Header{"X-Token": {"good"}}, status: 200, want: "a svc /unless "},
		{name: "abort", url: "/abort", status: 418},
		{name: "timeout", url: "/stuck", status: 504},
		{name: "retry", url: "/flaky", status: 200, want: "a svc /flaky "},
		{name: "retry on a status code", url: "/flaky-503", status: 200, want: "a svc /flaky-503 "},
		{name: "no retry on another one", url: "/flaky-429", status: 503},
		{name: "redirect with the query", url: "/new-path?q=1", status: 301, want: "http://svc/there?q=1"},
		{name: "redirect without the query", url: "/new-path-only?q=1", status: 301, want: "http://svc/there"},
		{name: "method", method: http.MethodDelete, url: "/h", status: 200, want: "b svc /h "},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a.Requests.Store(0)
			resp, body := request(t, e, tc.method, tc.url, tc.header)
			if resp.StatusCode != tc.status || tc.status/100 != 3 && !strings.Contains(body, tc.want) {
				t.Errorf("got %d %q, want %d %q", resp.StatusCode, body, tc.status, tc.want)
			}
			if tc.status/100 == 3 && resp.Header.Get("Location") != tc.want {
				t.Errorf("got Location %q, want %q", resp.Header.Get("Location"), tc.want)
			}
		})
	}
	t.Run("cors", func(t *testing.T) {
		resp, _ := request(t, e, http.MethodOptions, "/cors", http.Header{
			"Origin": {"http://a.example"}, "Access-Control-Request-Method": {"PUT"},
		})
		if got := resp.Header.Get("Access-Control-Allow-Origin"); got != "http://a.example" {
			t.Errorf("allowed origin %q, want http://a.example", got)
		}
		if got := resp.Header.Get("Access-Control-Max-Age"); got != "300" {
			t.Errorf("maximal age %q, want 300", got)
		}
	})
	t.Run("cors of other origins", func(t *testing.T) {
		for origin, allowed := range map[string]bool{"http://a.b": true, "https://b.example": true, "https://b.example.c": false, "http://b.example": false} {
			before := a.Requests.Load()
			resp, _ := request(t, e, http.MethodOptions, "/cors-kept", http.Header{"Origin": {origin}, "Access-Control-Request-Method": {"PUT"}})
			if got := resp.Header.Get("Access-Control-Allow-Origin"); (got == origin) != allowed || got != "" && got != origin {
				t.Errorf("%s: allowed origin %q", origin, got)
			}
			if a.Requests.Load() != before {
				t.Errorf("%s: the preflight went to the service", origin)
			}
		}
	})
	t.Run("abort of gRPC", func(t *testing.T) {
		resp, _ := request(t, e, http.MethodPost, "/abort-grpc", http.Header{"Content-Type": {"application/grpc"}})
		if got := resp.Header.Get("Grpc-Status"); resp.StatusCode != http.StatusOK || got != "14" {
			t.Errorf("got %d with status %q of gRPC, want 200 with 14", resp.StatusCode, got)
		}
	})
	t.Run("retry at another host", func(t *testing.T) {
		for range 20 {
			if resp, body := request(t, e, "", "/a-fails", nil); resp.StatusCode != http.StatusOK || !strings.HasPrefix(body, "b ") {
				t.Fatalf("got %d %q, want an answer of b", resp.StatusCode, body)
			}
		}
	})
	t.Run("names", func(t *testing.T) {
		if resp, _ := request(t, e, "", "/named", nil); resp.Header.Get("X-Route") != "the.route" {
			t.Errorf("the route is called %q, want the.route", resp.Header.Get("X-Route"))
		}
		if stats := e.AdminText("/stats?filter=route.precious"); !strings.Contains(stats, "route.precious.upstream_rq_total: 1") {
			t.Errorf("statistics of the route:\n%s", stats)
		}
	})
	t.Run("mirror", func(t *testing.T) {
		before := b.Requests.Load()
		request(t, e, "", "/mirror", nil)
		deadline := time.Now().Add(30 * time.Second)
		for b.Requests.Load() == before {
			if time.Now().After(deadline) {
				t.Fatal("the mirror got no copy")
			}
			time.Sleep(time.Millisecond) // The copy is sent beside the answer.
		}
	})
	t.Run("forward proxy", func(t *testing.T) {
		answer := envoytest.Exchange(t, e.Dial("http_127.0.0.1_15002"), "GET http://svc/abs HTTP/1.1\r\nHost: svc\r\nConnection: close\r\n\r\n")
		if !strings.Contains(answer, "a svc /abs ") {
			t.Errorf("got %q", answer)
		}
	})
	t.Run("tcp", func(t *testing.T) {
		get := "GET /tcp HTTP/1.1\r\nHost: raw\r\nConnection: close\r\n\r\n"
		for ip, want := range map[string]string{"10.2.0.1": "a raw /tcp", "10.2.9.9": "b raw /tcp", "10.3.0.1": "", "192.0.2.1": ""} {
			answer := envoytest.Exchange(t, e.Captured(ip, 9000), get)
			if want == "" && answer != "" || !strings.Contains(answer, want) {
				t.Errorf("%s: got %q, want %q", ip, answer, want)
			}
		}
	})
}

func behaviourConfig(a, b *envoytest.Backend) *ir.Config {
	path := func(p string, r ir.Route) *ir.Route {
		r.Match.Path = p
		return &r
	}
	header := func(h ir.HeaderMatch) *ir.Route {
		return &ir.Route{Match: ir.Match{Headers: []ir.HeaderMatch{h}}, Clusters: all("b")}
	}
	unavailable := 14
	routes := []*ir.Route{
		path("/redirect", ir.Route{Redirect: &ir.Redirect{Host: "b.example", Path: "/new", StripQuery: true}}),
		path("/redirect-host", ir.Route{Redirect: &ir.Redirect{Host: "b.example"}}),
		{Match: ir.Match{Prefix: "/rewrite"}, Rewrite: &ir.Rewrite{Host: "c.example", Path: "/other"}},
		{Match: ir.Match{Regex: "/items/[0-9]+"}, Rewrite: &ir.Rewrite{Path: "/item"}},
		header(ir.HeaderMatch{Name: "x-animal", Prefix: "dog.cat"}),
		header(ir.HeaderMatch{Name: "x-present", Present: true}),
		header(ir.HeaderMatch{Name: "x-empty"}),
		header(ir.HeaderMatch{Name: ":method", Exact: "DELETE"}),
		{Match: ir.Match{Prefix: "/Case", IgnoreCase: true}, Rewrite: &ir.Rewrite{Path: "/lower"}},
		{Match: ir.Match{Query: []ir.QueryMatch{{Name: "page", Exact: "1"}, {Name: "id", Regex: "[0-9]+"}}}, Clusters: all("b")},
		{Match: ir.Match{Query: []ir.QueryMatch{{Name: "debug", Present: true}}}, Clusters: all("b")},
		path("/append", ir.Route{RequestHeaders: ir.HeaderOperations{Append: []ir.Header{{Name: "x-added", Value: "50%"}}}}),
		path("/set", ir.Route{RequestHeaders: ir.HeaderOperations{Set: []ir.Header{{Name: "x-added", Value: "new"}}}}),
		path("/variable", ir.Route{RequestHeaders: ir.HeaderOperations{Set: []ir.Header{{Name: "x-added", Value: "%REQ(x-token)%"}}}}),
		path("/format", ir.Route{RequestHeaders: ir.HeaderOperations{Set: []ir.Header{{Name: "x-added", Value: "50%% %REQ(x-token)% %REQ(x?:method)%", Format: true}}}}),
		path("/set-empty", ir.Route{RequestHeaders: ir.HeaderOperations{Set: []ir.Header{{Name: "x-added"}}}}),
		path("/remove", ir.Route{RequestHeaders: ir.HeaderOperations{Remove: []string{"x-added"}}}),
		path("/share", ir.Route{Clusters: []ir.WeightedCluster{{
			Name: "a", Weight: 100, RequestHeaders: ir.HeaderOperations{Remove: []string{"x-added"}},
		}}}),
		path("/admin", ir.Route{Response: &ir.DirectResponse{Status: 403, Body: "no entry"}}),
		path("/closed", *(&ir.Route{}).Closed(ir.Match{})),
		path("/see-other", ir.Route{Redirect: &ir.Redirect{Scheme: "https", Port: 8443, Code: 303}}),
		{Match: ir.Match{Prefix: "/gone/"}, Redirect: &ir.Redirect{Prefix: "/come/"}},
		path("/regex-7", ir.Route{Rewrite: &ir.Rewrite{Regex: &ir.RegexRewrite{Match: "-([0-9])", Substitution: `/\1`}}}),
		{Match: ir.Match{Prefix: "/without", Headers: []ir.HeaderMatch{{Name: "x-token", Present: true, Not: true}}}, Response: ir.Unavailable()},
		{Match: ir.Match{Prefix: "/unless", Headers: []ir.HeaderMatch{{Name: "x-token", Exact: "good", Not: true}}}, Response: ir.Unavailable()},
		path("/abort", ir.Route{Fault: &ir.Fault{AbortStatus: 418, AbortPerMillion: 1000000}}),
		path("/stuck", ir.Route{Timeout: 50 * time.Millisecond}),
		path("/flaky", ir.Route{Retry: &ir.Retry{Attempts: 1}}),
		path("/flaky-503", ir.Route{Retry: &ir.Retry{On: "retriable-status-codes", StatusCodes: []int{503}, Attempts: 1}}),
		path("/flaky-429", ir.Route{Retry: &ir.Retry{On: "retriable-status-codes", StatusCodes: []int{429}, Attempts: 1}}),
		path("/new-path", ir.Route{Redirect: &ir.Redirect{Path: "/there"}}),
		path("/new-path-only", ir.Route{Redirect: &ir.Redirect{Path: "/there", StripQuery: true}}),
		path("/cors", ir.Route{CORS: &ir.CORS{AllowOrigins: []ir.OriginMatch{{Exact: "http://a.example"}}, AllowMethods: []string{"PUT"}, MaxAge: 5 * time.Minute}}),
		path("/cors-kept", ir.Route{CORS: &ir.CORS{
			AllowOrigins: []ir.OriginMatch{{Prefix: "http://a."}, {Regex: `https://[a-z]+\.example`}}, AnswerPreflights: true,
		}}),
		path("/abort-grpc", ir.Route{Fault: &ir.Fault{AbortGRPC: &unavailable, AbortPerMillion: ir.Million}}),
		path("/a-fails", ir.Route{Clusters: all("pair"), Retry: &ir.Retry{On: "retriable-status-codes", StatusCodes: []int{503}, Attempts: 2, OtherHosts: ir.Untried, BackOff: time.Millisecond}}),
		path("/named", ir.Route{
			Name: "the.route", StatPrefix: "precious", ResponseHeaders: ir.HeaderOperations{Set: []ir.Header{{Name: "x-route", Value: "%ROUTE_NAME%", Format: true}}},
		}),
		path("/mirror", ir.Route{Mirrors: []ir.Mirror{{Cluster: "b", PerMillion: ir.Million}}}),
		{},
	}
	for _, r := range routes {
		if r.Clusters == nil && r.Redirect == nil && r.Response == nil {
			r.Clusters = all("a")
		}
	}
	pair := a.Cluster()
	pair.Name, pair.LoadBalancer, pair.Hosts = "pair", ir.Random, append(pair.Hosts, b.Cluster().Hosts...)
	listeners := captured(routes...)
	table := listeners[1].HTTP.Inline
	return config(nil, append(listeners,
		&ir.Listener{IP: "127.0.0.1", Port: 15002, Bind: true, HTTP: &ir.HTTPListener{Inline: table, ForwardProxy: true}},
		&ir.Listener{IP: "0.0.0.0", Port: 9000, TCP: &ir.TCPListener{Routes: []ir.TCPRoute{
			{Destinations: []string{"10.2.0.0/24"}, Clusters: ir.Whole("a")},
			{Destinations: []string{"10.2.0.1/32", "10.2.0.0/16"}, Clusters: ir.Whole("b")},
		}}},
	), a.Cluster(), b.Cluster(), pair)
}

// captured returns the listeners of a sidecar: one that captures connections, and one that
// has the routes for requests to the service, whose host is svc.
func captured(routes ...*ir.Route) []*ir.Listener {
	table := &ir.RouteTable{Name: "80", VirtualHosts: []*ir.VirtualHost{{Name: "svc", Domains: []string{"svc"}, Routes: routes}}}
	return []*ir.Listener{
		{IP: "127.0.0.1", Port: 15001, UseOriginalDst: true, Bind: true},
		{IP: "0.0.0.0", Port: envoytest.ServicePort, Direction: ir.Outbound, HTTP: &ir.HTTPListener{Inline: table}},
	}
}

// request sends a request to the service, in a captured connection.
func request(t *testing.T, e *envoytest.Envoy, method, url string, header http.Header) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Host, req.Header, req.Close = "svc", header.Clone(), true
	conn := e.Captured(envoytest.ServiceIP, envoytest.ServicePort)
	defer conn.Close()
	if err := req.Write(conn); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(body)
}
