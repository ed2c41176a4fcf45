package ir_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pilot-api/pilot-api/ir"
)

func TestListenersAt(t *testing.T) {
	cfg := &ir.Config{Listeners: []*ir.Listener{
		{IP: "0.0.0.0", Port: 80, HTTP: &ir.HTTPListener{Table: "80"}},
		{Port: 9080, TCP: &ir.TCPListener{Routes: []ir.TCPRoute{{Clusters: ir.Whole("in.9080")}}}},
		{IP: "0.0.0.0", Port: 15001, UseOriginalDst: true},
		{IP: "10.0.0.7", Port: 9080, TCP: &ir.TCPListener{Routes: []ir.TCPRoute{{Clusters: ir.Whole("loser")}}}},
		{IP: "0.0.0.0", Port: 443, HTTP: &ir.HTTPListener{Table: "443"}},
		{IP: "0.0.0.0", Port: 443, TCP: &ir.TCPListener{}},
		{IP: "fd00:0::8", Port: 80, HTTP: &ir.HTTPListener{Table: "80"}},
		{IP: "fd00::8", Port: 80, TCP: &ir.TCPListener{Routes: []ir.TCPRoute{{Clusters: ir.Whole("loser")}}}},
	}}
	for _, tc := range []struct {
		ip            string
		want          []string
		wantOwnBlocks []string
	}{
		{"10.0.0.7", []string{"0.0.0.0:15001", "0.0.0.0:443", "0.0.0.0:80", "10.0.0.7:9080", "[fd00:0::8]:80"}, []string{"10.0.0.7/32"}},
		{"10.0.0.8", []string{"0.0.0.0:15001", "0.0.0.0:443", "0.0.0.0:80", "10.0.0.7:9080", "10.0.0.8:9080", "[fd00:0::8]:80"}, []string{"10.0.0.8/32"}},
		{"fd00::7", []string{"0.0.0.0:15001", "0.0.0.0:443", "0.0.0.0:80", "10.0.0.7:9080", "[fd00::7]:9080", "[fd00:0::8]:80"}, []string{"fd00::7/128"}},
	} {
		var got, blocks []string
		for _, l := range cfg.ListenersAt(tc.ip) {
			got = append(got, l.Address())
			if l.TCP != nil && l.TCP.Routes[0].Clusters[0].Name == "in.9080" {
				blocks = l.TCP.Routes[0].Destinations
			}
			if l.Port == 443 && l.HTTP == nil {
				t.Errorf("%s: the second listener of an address won", tc.ip)
			}
		}
		if d := cmp.Diff(tc.want, got); d != "" {
			t.Errorf("%s: addresses (-want +got):\n%s", tc.ip, d)
		}
		if d := cmp.Diff(tc.wantOwnBlocks, blocks); d != "" {
			t.Errorf("%s: own destinations (-want +got):\n%s", tc.ip, d)
		}
	}
	if cfg.Listeners[1].IP != "" || cfg.Listeners[1].TCP.Routes[0].Destinations != nil {
		t.Error("ListenersAt changed the shared Config")
	}
}

func TestMatchCatchAll(t *testing.T) {
	for _, tc := range []struct {
		match ir.Match
		want  bool
	}{
		{ir.Match{}, true},
		{ir.Match{Prefix: "/"}, true},
		{ir.Match{Prefix: "/a"}, false},
		{ir.Match{Path: "/"}, false},
		{ir.Match{Regex: ".*"}, false},
		{ir.Match{Headers: []ir.HeaderMatch{{Name: "a", Present: true}}}, false},
	} {
		if got := tc.match.CatchAll(); got != tc.want {
			t.Errorf("%+v: catch-all %v, want %v", tc.match, got, tc.want)
		}
	}
}

// valid is a config with one of everything.
func valid() *ir.Config {
	table := func(name string) *ir.RouteTable {
		return &ir.RouteTable{Name: name, VirtualHosts: []*ir.VirtualHost{{
			Name: "a", Domains: []string{"a", "a:80"},
			Routes: []*ir.Route{
				{Match: ir.Match{Path: "/old"}, Redirect: &ir.Redirect{Path: "/new"}},
				{Clusters: []ir.WeightedCluster{{Name: "out.a", Weight: 90}, {Name: "out.b", Weight: 10}}},
			},
		}}}
	}
	return &ir.Config{
		Delay: time.Second, RouteDelay: time.Second,
		Clusters: []*ir.Cluster{
			{Name: "in.80", Type: ir.StaticHosts, Hosts: []ir.Endpoint{{Host: "127.0.0.1", Port: 80}}, ConnectTimeout: time.Second},
			{Name: "out.a", Type: ir.Registry, EndpointKey: "a", ConnectTimeout: time.Second},
			{Name: "out.b", Type: ir.OriginalDestination, ConnectTimeout: time.Second},
		},
		RouteTables: []*ir.RouteTable{table("80")},
		Listeners: []*ir.Listener{
			{IP: "0.0.0.0", Port: 15001, UseOriginalDst: true, Bind: true},
			{IP: "0.0.0.0", Port: 80, HTTP: &ir.HTTPListener{Table: "80"}},
			{Port: 80, HTTP: &ir.HTTPListener{Inline: table("inbound|80")}},
			{Port: 81, TCP: &ir.TCPListener{Routes: []ir.TCPRoute{{Destinations: []string{"10.0.0.0/8"}, Clusters: ir.Whole("in.80")}}}},
		},
	}
}

func TestValidate(t *testing.T) {
	if err := ir.Validate(valid()); err != nil {
		t.Fatalf("a valid config: %v", err)
	}
	firstRoute := func(c *ir.Config) *ir.Route { return c.RouteTables[0].VirtualHosts[0].Routes[1] }
	for want, spoil := range map[string]func(*ir.Config){
		"delays: must be above 0":                       func(c *ir.Config) { c.Delay = 0 },
		"cluster out.a: must occur only once":           func(c *ir.Config) { c.Clusters[2].Name = "out.a" },
		"cluster : must have a name":                    func(c *ir.Config) { c.Clusters[2].Name = "" },
		"connect timeout must not be negative":          func(c *ir.Config) { c.Clusters[0].ConnectTimeout = -1 },
		"must have a key to ask endpoints by":           func(c *ir.Config) { c.Clusters[1].EndpointKey = "" },
		"must have no hosts, found 1":                   func(c *ir.Config) { c.Clusters[2].Hosts = []ir.Endpoint{{Host: "a", Port: 1}} },
		`host must be an IP address, found "localhost"`: func(c *ir.Config) { c.Clusters[0].Hosts[0].Host = "localhost" },
		"host 127.0.0.1:80 must occur only once": func(c *ir.Config) {
			c.Clusters[0].Hosts = append(c.Clusters[0].Hosts, c.Clusters[0].Hosts[0])
		},
		"port of a host must be 1 to 65535":                     func(c *ir.Config) { c.Clusters[0].Hosts[0].Port = 0 },
		`type must be registry, static, strict-dns`:             func(c *ir.Config) { c.Clusters[0].Type = "sds" },
		"listener 0.0.0.0:0: port must be":                      func(c *ir.Config) { c.Listeners[1].Port = 0 },
		"must be exactly one of hand-off, HTTP, TCP and chains": func(c *ir.Config) { c.Listeners[0].HTTP = &ir.HTTPListener{Table: "80"} },
		"stand before those for any": func(c *ir.Config) {
			c.Listeners[0].TCP = &ir.TCPListener{Routes: []ir.TCPRoute{{Clusters: ir.Whole(c.Clusters[0].Name)}, {Port: 80, Clusters: ir.Whole(c.Clusters[0].Name)}}}
		},
		"a table inline or the name of one":              func(c *ir.Config) { c.Listeners[2].HTTP.Table = "80" },
		`one of the route tables, found "8080"`:          func(c *ir.Config) { c.Listeners[1].HTTP.Table = "8080" },
		`one of the clusters, found "gone"`:              func(c *ir.Config) { c.Listeners[3].TCP.Routes[0].Clusters[0].Name = "gone" },
		`a CIDR block like 10.0.0.0/8, found "a.com/32"`: func(c *ir.Config) { c.Listeners[3].TCP.Routes[0].Destinations[0] = "a.com/32" },
		"virtual host a: must occur only once": func(c *ir.Config) {
			t := c.RouteTables[0]
			t.VirtualHosts = append(t.VirtualHosts, &ir.VirtualHost{Name: "a", Domains: []string{"b"}})
		},
		"domain A: must occur only once": func(c *ir.Config) { c.RouteTables[0].VirtualHosts[0].Domains[1] = "A" },
		"must have a domain":             func(c *ir.Config) { c.RouteTables[0].VirtualHosts[0].Domains = nil },
		"must do exactly one of redirecting, answering and going to clusters": func(c *ir.Config) { firstRoute(c).Redirect = &ir.Redirect{Host: "b"} },
		"redirect must change the URL":                                        func(c *ir.Config) { *c.RouteTables[0].VirtualHosts[0].Routes[0].Redirect = ir.Redirect{} },
		"weights must sum to 1 to 4294967295, found 4294967305":               func(c *ir.Config) { firstRoute(c).Clusters[0].Weight = math.MaxUint32 },
		"weight of out.a must not be negative":                                func(c *ir.Config) { firstRoute(c).Clusters[0].Weight = -90 },
		`mirror: must name one of the clusters`:                               func(c *ir.Config) { firstRoute(c).Mirrors = []ir.Mirror{{Cluster: "gone", PerMillion: 1}} },
		`mirror: must get 1 to 1000000`:                                       func(c *ir.Config) { firstRoute(c).Mirrors = []ir.Mirror{{Cluster: "out.a"}} },
		"timeout must not be negative":                                        func(c *ir.Config) { firstRoute(c).Timeout = -1 },
		"retry must have attempts":                                            func(c *ir.Config) { firstRoute(c).Retry = &ir.Retry{} },
		"a fault must meet 0 to 1000000":                                      func(c *ir.Config) { firstRoute(c).Fault = &ir.Fault{AbortPerMillion: 1_000_001} },
		"delay must not be negative":                                          func(c *ir.Config) { firstRoute(c).Fault = &ir.Fault{Delay: -1} },
		"must match a path, a prefix or a regex":                              func(c *ir.Config) { firstRoute(c).Match = ir.Match{Path: "/a", Prefix: "/b"} },
		"a header to match must have a name":                                  func(c *ir.Config) { firstRoute(c).Match.Headers = []ir.HeaderMatch{{}} },
		"header x must match in one way, found more": func(c *ir.Config) {
			firstRoute(c).Match.Headers = []ir.HeaderMatch{{Name: "x", Exact: "a", Present: true}}
		},
		"route table 80: must occur only once": func(c *ir.Config) { c.RouteTables = append(c.RouteTables, c.RouteTables[0]) },
		"listener :80: virtual host a: route 1: must name one of the clusters, found \"out.c\"; it answers 503": func(c *ir.Config) {
			c.Listeners[2].HTTP.Inline.VirtualHosts[0].Routes[1].Clusters = []ir.WeightedCluster{{Name: "out.c", Weight: 1}}
		},
	} {
		c := valid()
		spoil(c)
		err := ir.Validate(c)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error with %q, got %v", want, err)
		}
		if c.Delay == 0 {
			continue // That follows from no object.
		}
		closed, _ := ir.Close(c)
		if err := ir.Validate(closed); err != nil {
			t.Errorf("%s: closed, and still: %v", want, err)
		}
	}
}

// TestCloseCostsOnlyTheCulprit: beside what is wrong all stays, the given
// configuration too, and nothing takes what was the culprit's.
func TestCloseCostsOnlyTheCulprit(t *testing.T) {
	for about, test := range map[string]struct{ spoil, want func(*ir.Config) }{
		"nothing": {func(*ir.Config) {}, func(*ir.Config) {}},
		"a cluster has no endpoints": {
			func(c *ir.Config) { c.Clusters[0].Hosts[0].Port = 65536 },
			func(c *ir.Config) { c.Clusters[0] = c.Clusters[0].Closed() },
		},
		"a route answers 503, whatever of its match can be asked": {
			func(c *ir.Config) {
				r := c.Listeners[2].HTTP.Inline.VirtualHosts[0].Routes[1]
				r.Match = ir.Match{Prefix: "/a", Headers: []ir.HeaderMatch{{Name: "x", Exact: "y"}, {}}}
			},
			func(c *ir.Config) {
				c.Listeners[2].HTTP.Inline.VirtualHosts[0].Routes[1] = &ir.Route{
					Match: ir.Match{Prefix: "/a", Headers: []ir.HeaderMatch{{Name: "x", Exact: "y"}}}, Response: ir.Unavailable(),
				}
			},
		},
		"an optional route is left out": {
			func(c *ir.Config) {
				h := c.RouteTables[0].VirtualHosts[0]
				h.Routes = append([]*ir.Route{{Optional: true}}, h.Routes...)
			},
			func(*ir.Config) {},
		},
		"a domain is the first one's": {
			func(c *ir.Config) {
				t := c.RouteTables[0]
				t.VirtualHosts = append(t.VirtualHosts, &ir.VirtualHost{Name: "b", Domains: []string{"A", "", "b\n", "b"}})
			},
			func(c *ir.Config) {
				t := c.RouteTables[0]
				t.VirtualHosts = append(t.VirtualHosts, &ir.VirtualHost{Name: "b", Domains: []string{"b"}})
			},
		},
		"a virtual host keeps domains that only it has": {
			func(c *ir.Config) {
				t := c.RouteTables[0]
				t.VirtualHosts = append(t.VirtualHosts, &ir.VirtualHost{Name: "a", Domains: []string{"b"}}, &ir.VirtualHost{Name: "c", Domains: []string{"a"}})
			},
			func(c *ir.Config) {
				t := c.RouteTables[0]
				t.VirtualHosts = append(t.VirtualHosts, &ir.VirtualHost{Name: "a#", Domains: []string{"b"}})
			},
		},
		"a listener is left out": {
			func(c *ir.Config) { c.Listeners[1].IP = "1.2.3" },
			func(c *ir.Config) { c.Listeners = append(c.Listeners[:1:1], c.Listeners[2:]...) },
		},
		"a destination that nobody has is not any destination": {
			func(c *ir.Config) {
				routes := &c.Listeners[3].TCP.Routes
				*routes = append(*routes, ir.TCPRoute{Destinations: []string{"1.2.3.4/33"}, Clusters: ir.Whole("out.a")})
			},
			func(*ir.Config) {},
		},
	} {
		given, spoilt, want := valid(), valid(), valid()
		test.spoil(given)
		test.spoil(spoilt)
		test.want(want)
		got, problems := ir.Close(given)
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", about, d)
		}
		if d := cmp.Diff(spoilt, given); d != "" {
			t.Errorf("%s: what was given is changed (-want +got):\n%s", about, d)
		}
		if (len(problems) == 0) != (about == "nothing") {
			t.Errorf("%s: problems %v", about, problems)
		}
	}
}
