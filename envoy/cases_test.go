package envoy_test

import (
	"math"
	"strings"
	"time"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/ir"
)

// An aCase is a configuration whose spellings are in testdata/<name>.txtar.
type aCase struct {
	name   string
	config *ir.Config
}

var rule = []diag.Ref{{Kind: "RouteRule", Namespace: "default", Name: "rule"}}

func cases() []aCase {
	return []aCase{
		{"clusters", clusterCase()},
		{"listeners", listenerCase()},
		{"tcp", tcpCase()},
		{"matches", matchCase()},
		{"actions", actionCase()},
		{"faults", faultCase()},
		{"unspeakable", unspeakableCase()},
	}
}

func config(tables []*ir.RouteTable, listeners []*ir.Listener, clusters ...*ir.Cluster) *ir.Config {
	return &ir.Config{
		Delay: 5 * time.Second, RouteDelay: 30 * time.Second,
		RouteTables: tables, Listeners: listeners, Clusters: clusters,
	}
}

func registryCluster(key string) *ir.Cluster {
	return &ir.Cluster{Name: "out." + key, Type: ir.Registry, EndpointKey: key, ConnectTimeout: time.Second}
}

func all(cluster string) []ir.WeightedCluster {
	return []ir.WeightedCluster{{Name: cluster, Weight: 100}}
}

// table returns a route table with one virtual host, whose routes all come from the rule.
func table(name string, routes ...*ir.Route) *ir.RouteTable {
	for _, r := range routes {
		r.Origins = rule
		if r.Clusters == nil && r.Redirect == nil {
			r.Clusters = all("out.a|http")
		}
	}
	return &ir.RouteTable{Name: name, VirtualHosts: []*ir.VirtualHost{
		{Name: "a|http", Domains: []string{"a:80", "a"}, Routes: routes},
	}}
}

func outbound(port int, tableName string) *ir.Listener {
	return &ir.Listener{IP: "0.0.0.0", Port: port, Direction: ir.Outbound, HTTP: &ir.HTTPListener{Table: tableName}}
}

func clusterCase() *ir.Config {
	long := registryCluster("reviews.default.svc.cluster.local|http|" + strings.Repeat("label=value,", 20))
	rich := registryCluster("rich|http2|version=v1")
	rich.HTTP2, rich.MaxRequestsPerConnection, rich.LoadBalancer = true, 10, ir.LeastRequest
	rich.CircuitBreaker = &ir.CircuitBreaker{MaxConnections: 1, MaxPendingRequests: 2, MaxRequests: 3, MaxRetries: 4}
	seven, never := 7, 0
	rich.OutlierDetection = &ir.OutlierDetection{
		ConsecutiveErrors: &seven, GatewayErrors: &never, Interval: 10 * time.Second, BaseEjectionTime: 15500 * time.Millisecond, MaxEjectionPercent: 100,
	}
	bounded := registryCluster("bounded|http")
	bounded.CircuitBreaker = &ir.CircuitBreaker{MaxConnections: math.MaxUint32}
	bounded.OutlierDetection = &ir.OutlierDetection{MaxEjectionTime: 5 * time.Minute, MinHealthPercent: &never}
	defaults := registryCluster("defaults|http")
	defaults.LoadBalancer = ir.Random
	defaults.MaxRequestsPerConnection = 1
	defaults.CircuitBreaker, defaults.OutlierDetection = &ir.CircuitBreaker{}, &ir.OutlierDetection{}
	return config(nil, nil, bounded, defaults,
		&ir.Cluster{
			Name: "in.80", Type: ir.StaticHosts, ConnectTimeout: time.Second,
			Hosts: []ir.Endpoint{{Host: "127.0.0.1", Port: 80}, {Host: "::1", Port: 80}},
		},
		&ir.Cluster{
			Name: "out.dns|https", Type: ir.StrictDNS, EndpointKey: "dns|https", ConnectTimeout: 1500 * time.Microsecond,
			Hosts: []ir.Endpoint{{Host: "dns.example", Port: 443}}, TLS: &ir.ClientTLS{},
		},
		&ir.Cluster{
			Name: "out.weighed|http", Type: ir.StrictDNS, ConnectTimeout: time.Second,
			Hosts: []ir.Endpoint{
				{Host: "a.example", Port: 80, Zone: "r/z", Weight: math.MaxUint32 - 1}, {Host: "b.example", Port: 81, Zone: "r/z/s", Weight: 1}, {Host: "192.0.2.1", Port: 82},
			},
		},
		tlsCluster("out.mtls|https", ir.ClientTLS{
			CertificateFile: "testdata/tls.crt", KeyFile: "testdata/tls.key", CAFile: "testdata/tls.crt",
			SNI: "mesh.example", SubjectAltNames: []string{"mesh.example", "spiffe://mesh.example/a"},
		}),
		tlsCluster("out.tls-named|https", ir.ClientTLS{CAFile: "testdata/tls.crt", SNI: "mesh.example", AutoSNI: true, AutoSAN: true}),
		tlsCluster("out.tls-verified|https", ir.ClientTLS{CAFile: "testdata/tls.crt"}),
		&ir.Cluster{Name: "out.empty|http", Type: ir.StaticHosts, EndpointKey: "empty|http", ConnectTimeout: time.Second},
		long,
		&ir.Cluster{Name: "out.original", Type: ir.OriginalDestination, LoadBalancer: ir.Random, ConnectTimeout: time.Second},
		rich)
}

func tlsCluster(name string, tls ir.ClientTLS) *ir.Cluster {
	return &ir.Cluster{
		Name: name, Type: ir.StaticHosts, ConnectTimeout: time.Second,
		Hosts: []ir.Endpoint{{Host: "127.0.0.1", Port: 443}}, TLS: &tls,
	}
}

func listenerCase() *ir.Config {
	inbound := table("inbound|9080", &ir.Route{Operation: "default-route", Clusters: all("in.9080")})
	return config(
		[]*ir.RouteTable{table("443"), table("80"), table("http_proxy")},
		[]*ir.Listener{
			{IP: "0.0.0.0", Port: 15001, Direction: ir.Outbound, UseOriginalDst: true, Bind: true},
			{IP: "0.0.0.0", Port: 80, Direction: ir.Outbound, HTTP: &ir.HTTPListener{Table: "80", Tracing: true, AccessLog: "/dev/stdout"}},
			{Port: 9080, Direction: ir.Inbound, HTTP: &ir.HTTPListener{Inline: inbound, Tracing: true}},
			{IP: "127.0.0.1", Port: 15002, Direction: ir.Outbound, Bind: true, HTTP: &ir.HTTPListener{Table: "http_proxy", ForwardProxy: true}},
			{
				IP: "127.0.0.1", Port: 15003, Direction: ir.Outbound, Bind: true,
				HTTP: &ir.HTTPListener{Table: "http_proxy", ForwardProxy: true, AbsoluteURLs: true},
			},
			{
				IP: "0.0.0.0", Port: 443, Direction: ir.Gateway, Bind: true,
				HTTP: &ir.HTTPListener{Table: "443", UseRemoteAddress: true, Tracing: true},
				TLS:  &ir.ServerTLS{CertificateFile: "testdata/tls.crt", KeyFile: "testdata/tls.key", ALPN: []string{"h2", "http/1.1"}},
			},
		},
		&ir.Cluster{Name: "in.9080", Type: ir.StaticHosts, ConnectTimeout: time.Second, Hosts: []ir.Endpoint{{Host: "127.0.0.1", Port: 9080}}})
}

func tcpCase() *ir.Config {
	tcp := func(ip string, port int, mongo bool, routes ...ir.TCPRoute) *ir.Listener {
		return &ir.Listener{IP: ip, Port: port, Direction: ir.Outbound, Origins: rule, TCP: &ir.TCPListener{Mongo: mongo, Routes: routes}}
	}
	to := func(cluster string, destinations ...string) ir.TCPRoute {
		return ir.TCPRoute{Clusters: ir.Whole(cluster), Destinations: destinations}
	}
	logged := tcp("", 3306, false, to("out.a|tcp"))
	logged.TCP.AccessLog = "/dev/stdout"
	return config(nil, []*ir.Listener{
		logged,
		tcp("10.1.0.0", 27017, true, to("out.a|mongo", "10.1.0.0/32")),
		tcp("0.0.0.0", 9000, false,
			to("out.a|tcp", "10.1.2.0/24", "fd00::/8"),
			to("out.b|tcp", "10.1.2.3/32", "10.1.0.0/16"),
			to("out.c|tcp"),
			to("out.b|tcp", "10.1.9.9/16"),
			to("out.a|tcp", "fd00::1/128", "a.example/32"),
			to("out.b|tcp", "b.example")),
		tcp("0.0.0.0", 9001, false),
	}, registryCluster("a|mongo"), registryCluster("a|tcp"), registryCluster("b|tcp"), registryCluster("c|tcp"))
}

func matchCase() *ir.Config {
	header := func(h ir.HeaderMatch) *ir.Route { return &ir.Route{Match: ir.Match{Headers: []ir.HeaderMatch{h}}} }
	query := func(q ...ir.QueryMatch) *ir.Route { return &ir.Route{Match: ir.Match{Query: q}} }
	return config([]*ir.RouteTable{table("80",
		&ir.Route{Match: ir.Match{Path: "/exact"}},
		&ir.Route{Match: ir.Match{Prefix: "/prefix"}},
		&ir.Route{Match: ir.Match{Regex: `/items/[0-9]+(?:/v\d)?`}},
		&ir.Route{Match: ir.Match{Regex: `/ns/[a-z0-9-]{1,63}/.*`}},
		header(ir.HeaderMatch{Name: "cookie", Regex: "^(.*?;)?(user=jason)(;.*)?$"}),
		header(ir.HeaderMatch{Name: "animal", Prefix: "dog.cat"}),
		header(ir.HeaderMatch{Name: ":authority", Exact: "a.example"}),
		header(ir.HeaderMatch{Name: "x-present", Present: true}),
		header(ir.HeaderMatch{Name: "x-empty"}),
		&ir.Route{Match: ir.Match{Path: "/Exact", IgnoreCase: true}},
		&ir.Route{Match: ir.Match{Prefix: "/Prefix", IgnoreCase: true}},
		query(ir.QueryMatch{Name: "debug", Present: true}),
		query(ir.QueryMatch{Name: "page", Exact: "1"}, ir.QueryMatch{Name: "id", Regex: "[0-9]+"}),
		query(ir.QueryMatch{Name: "empty"}),
		&ir.Route{Match: ir.Match{Prefix: "/both", Headers: []ir.HeaderMatch{
			{Name: ":method", Exact: "GET"}, {Name: "x", Exact: "y"},
		}}},
	)}, []*ir.Listener{outbound(80, "80")}, registryCluster("a|http"))
}

func actionCase() *ir.Config {
	credentials := true
	path := func(p string, r ir.Route) *ir.Route {
		r.Match = ir.Match{Path: p}
		return &r
	}
	return config([]*ir.RouteTable{table("80",
		path("/redirect", ir.Route{Operation: "move", Redirect: &ir.Redirect{Host: "b.example", Path: "/new", StripQuery: true}}),
		path("/redirect-host", ir.Route{Redirect: &ir.Redirect{Host: "b.example"}}),
		path("/split", ir.Route{Clusters: []ir.WeightedCluster{
			{Name: "out.a|http", Weight: 75}, {Name: "out.b|http", Weight: 25}, {Name: "out.a|http|v=2", Weight: 0},
		}}),
		path("/per-mille", ir.Route{Clusters: []ir.WeightedCluster{{Name: "out.a|http", Weight: 999}, {Name: "out.b|http", Weight: 1}}}),
		path("/rewrite", ir.Route{Rewrite: &ir.Rewrite{Host: "c.example", Path: "/other"}}),
		path("/timeout", ir.Route{Timeout: 15500 * time.Millisecond}),
		path("/tiny-timeout", ir.Route{Timeout: time.Microsecond}),
		path("/retry", ir.Route{Retry: &ir.Retry{Attempts: 3, PerTryTimeout: 2 * time.Second}}),
		path("/retry-on", ir.Route{Retry: &ir.Retry{On: "reset,retriable-status-codes", StatusCodes: []int{429, 503}, Attempts: 2}}),
		path("/retry-elsewhere", ir.Route{Name: "elsewhere", StatPrefix: "retried", Retry: &ir.Retry{
			Attempts: 2, BackOff: 250 * time.Millisecond, OtherHosts: ir.Untried, OtherLocalities: true,
		}}),
		path("/retry-plain", ir.Route{Retry: &ir.Retry{Attempts: 1}}),
		path("/mirror", ir.Route{Mirrors: []ir.Mirror{{Cluster: "out.b|http", PerMillion: ir.Million}}}),
		path("/mirrors", ir.Route{Mirrors: []ir.Mirror{{Cluster: "out.b|http", PerMillion: 5_000}, {Cluster: "out.a|http", PerMillion: ir.Million}, {Cluster: "out.b|http", PerMillion: 300_000}}}),
		path("/websocket", ir.Route{WebSocket: ir.UpgradeAllowed}),
		path("/no-websocket", ir.Route{WebSocket: ir.UpgradeRefused}),
		path("/headers", ir.Route{RequestHeaders: ir.HeaderOperations{Append: []ir.Header{{Name: "x-discount", Value: "50%"}, {Name: "x-plain", Value: "v"}}}}),
		path("/cors", ir.Route{CORS: &ir.CORS{
			AllowOrigins: []ir.OriginMatch{{Exact: "http://a.example"}, {Exact: "*"}}, AllowMethods: []string{"GET", "POST"}, AllowHeaders: []string{"x-a", "x-b"},
			ExposeHeaders: []string{"x-c"}, MaxAge: 5 * time.Minute, AllowCredentials: &credentials,
		}}),
		path("/cors-origins", ir.Route{CORS: &ir.CORS{
			AllowOrigins: []ir.OriginMatch{{Prefix: "http://a."}, {Exact: "http://b.example"}, {Regex: `https?://.*\.c\.example`}}, AnswerPreflights: true,
		}}),
		path("/cors-empty", ir.Route{CORS: &ir.CORS{}}),
		path("/cors-no-credentials", ir.Route{CORS: &ir.CORS{AllowCredentials: new(bool)}}),
		&ir.Route{Operation: "default-route"},
	)}, []*ir.Listener{outbound(80, "80")}, registryCluster("a|http"), registryCluster("a|http|v=2"), registryCluster("b|http"))
}

func faultCase() *ir.Config {
	both := &ir.Fault{Delay: 5 * time.Second, DelayPerMillion: 1000000, AbortStatus: 503, AbortPerMillion: 250000}
	split := []ir.WeightedCluster{{Name: "out.a|http", Weight: 50}, {Name: "out.b|http", Weight: 50}}
	doo := []ir.HeaderMatch{{Name: "scooby", Exact: "doo"}}
	t := table("80",
		&ir.Route{Match: ir.Match{Headers: doo}, Fault: both, Clusters: split},
		&ir.Route{Match: ir.Match{Prefix: "/slow"}, Fault: &ir.Fault{Delay: time.Second, DelayPerMillion: 10000}},
		&ir.Route{Match: ir.Match{Path: "/slow/too"}, Fault: &ir.Fault{Delay: time.Second, DelayPerMillion: 10000}},
		&ir.Route{Match: ir.Match{Path: "/seldom"}, Fault: &ir.Fault{Delay: time.Second, DelayPerMillion: 15_000, AbortStatus: 500, AbortPerMillion: 5_000}},
		&ir.Route{Match: ir.Match{Path: "/no"}, Fault: &ir.Fault{AbortStatus: 400, AbortPerMillion: 1000000, Delay: time.Second}},
		&ir.Route{Match: ir.Match{Path: "/grpc"}, Fault: &ir.Fault{AbortGRPC: new(int), AbortPerMillion: 1000000}},
		&ir.Route{Match: ir.Match{Path: "/never"}, Fault: &ir.Fault{AbortStatus: 503}},
	)
	t.VirtualHosts = append(t.VirtualHosts, bystanderHosts(both)...)
	proxy := &ir.Listener{
		IP: "127.0.0.1", Port: 15002, Direction: ir.Outbound, Bind: true,
		HTTP: &ir.HTTPListener{Table: "http_proxy", ForwardProxy: true},
	}
	return config([]*ir.RouteTable{t, table("http_proxy", &ir.Route{Fault: both})},
		[]*ir.Listener{outbound(80, "80"), proxy}, registryCluster("a|http"), registryCluster("b|http"),
		registryCluster("early"), registryCluster("elsewhere"), registryCluster("late"), registryCluster("same"), registryCluster("user"))
}

// bystanderHosts returns virtual hosts that have a route with a fault and another route to the
// same cluster.
func bystanderHosts(f *ir.Fault) []*ir.VirtualHost {
	route := func(name, cluster, user string, fault *ir.Fault) *ir.Route {
		r := &ir.Route{Clusters: all(cluster), Fault: fault, Origins: []diag.Ref{{Kind: "RouteRule", Name: name}}}
		if user != "" {
			r.Match.Headers = []ir.HeaderMatch{{Name: "user", Exact: user}}
		}
		return r
	}
	host := func(name string, routes ...*ir.Route) *ir.VirtualHost {
		return &ir.VirtualHost{Name: name, Domains: []string{name}, Routes: routes}
	}
	return []*ir.VirtualHost{
		host("late", route("late-fault", "out.late", "ann", f), route("late", "out.late", "", nil)),
		host("early", route("early", "out.early", "ann", nil), route("early-fault", "out.early", "", f)),
		host("other-user", route("other-user", "out.user", "ann", nil), route("user-fault", "out.user", "bob", f)),
		host("same", route("same-fault", "out.same", "ann", f)),
		host("same-too", route("same-fault-too", "out.same", "ann", f)),
		host("elsewhere", route("elsewhere-fault", "out.elsewhere", "ann", f)),
		host("elsewhere-too", route("elsewhere", "out.elsewhere", "", nil)),
	}
}

func unspeakableCase() *ir.Config {
	return config([]*ir.RouteTable{table("80",
		&ir.Route{Match: ir.Match{Regex: "(?i)/items"}},
		&ir.Route{Match: ir.Match{Headers: []ir.HeaderMatch{{Name: "x", Regex: `\pL+`}}}, Fault: &ir.Fault{AbortStatus: 500, AbortPerMillion: 10000}},
		&ir.Route{Match: ir.Match{Regex: `/[(?i)]\\A`}},
		&ir.Route{Match: ir.Match{Query: []ir.QueryMatch{{Name: "q", Regex: `\Qa+b\E`}}}},
		&ir.Route{Match: ir.Match{Prefix: "/search?q="}},
		&ir.Route{Fault: &ir.Fault{AbortStatus: 100, AbortPerMillion: 100000}},
		&ir.Route{Fault: &ir.Fault{AbortStatus: 600, AbortPerMillion: 100000, Delay: time.Second, DelayPerMillion: 100000}},
		&ir.Route{Match: ir.Match{Headers: []ir.HeaderMatch{{Name: "x\ny", Exact: "z"}}}},
	)}, []*ir.Listener{outbound(80, "80")}, registryCluster("a|http"))
}
