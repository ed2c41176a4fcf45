package evaluator_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pilot-api/pilot-api/internal/evaluator"
)

// forwards is a v1 proxy whose listener at port 80 has the virtual hosts.
func forwards(t *testing.T, virtualHosts string) *evaluator.Proxy {
	t.Helper()
	const cluster = `{"name": "%s", "type": "original_dst", "lb_type": "original_dst_lb", "connect_timeout_ms": 1}`
	p, err := evaluator.ReadV1(evaluator.V1Answers{
		Clusters: fmt.Appendf(nil, `{"clusters": [`+cluster+`, `+cluster+`]}`, "a", "b"),
		Listeners: []byte(`{"listeners": [
			{"name": "virtual", "address": "tcp://0.0.0.0:15001", "filters": [], "use_original_dst": true},
			{"name": "80", "address": "tcp://0.0.0.0:80", "bind_to_port": false, "filters": [{"name": "http_connection_manager", "config": {
				"codec_type": "auto", "stat_prefix": "http", "rds": {"cluster": "rds", "route_config_name": "80"},
				"filters": [{"name": "cors", "config": {}}, {"name": "router", "config": {}}]}}]}]}`),
		Routes: map[string][]byte{"80": []byte(`{"virtual_hosts": [` + virtualHosts + `]}`)},
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func captured(host, path string) evaluator.Request {
	return evaluator.Request{Destination: netip.MustParseAddrPort("10.0.0.1:80"), Captured: true, Method: "GET", Host: host, Path: path}
}

func TestDomains(t *testing.T) {
	const route = `"routes": [{"prefix": "/", "cluster": "a"}]`
	p := forwards(t, `
		{"name": "any", "domains": ["*"], `+route+`},
		{"name": "long", "domains": ["*.b.example"], `+route+`},
		{"name": "short", "domains": ["*.example"], `+route+`},
		{"name": "exact", "domains": ["a.b.example", "a.b.example:80"], `+route+`}`)
	for host, want := range map[string]string{
		"a.b.example": "exact", "A.B.Example:80": "exact", "a.b.example:81": "any",
		"c.b.example": "long", "b.example": "short", ".example": "any", "x": "any",
	} {
		if got := p.Evaluate(captured(host, "/")).VirtualHost; got != want {
			t.Errorf("%s: got virtual host %q, want %q", host, got, want)
		}
	}
}

func TestRoutes(t *testing.T) {
	p := forwards(t, `{"name": "svc", "domains": ["svc"], "routes": [
		{"path": "/path", "cluster": "a", "prefix_rewrite": "/p"},
		{"prefix": "/pre", "cluster": "a", "prefix_rewrite": "/", "host_rewrite": "other"},
		{"prefix": "/Case", "case_sensitive": false, "cluster": "a"},
		{"regex": "/re/[0-9]+", "cluster": "a", "prefix_rewrite": "/re"},
		{"prefix": "/q?a=", "cluster": "a"},
		{"prefix": "/", "query_parameters": [{"name": "debug"}], "cluster": "a"},
		{"prefix": "/moved", "path_redirect": "/new", "host_redirect": "there"},
		{"prefix": "/away", "host_redirect": "there"},
		{"prefix": "/split", "weighted_clusters": {"clusters": [{"name": "a", "weight": 25}, {"name": "b", "weight": 75}]}},
		{"prefix": "/default", "cluster": "b"}]}`)
	for path, want := range map[string]string{
		"/path?x=1":     "a /p?x=1",
		"/path/":        "404",
		"/prefix?x=1":   "a@other /fix?x=1",
		"/CASE/x":       "a /CASE/x",
		"/re/17?x=1":    "a /re?x=1",
		"/re/17/x":      "404",
		"/q?a=1":        "a /q?a=1",
		"/z?x&debug":    "a /z?x&debug",
		"/moved?x=1":    "301 http://there/new",
		"/away/x?y=1":   "301 http://there/away/x?y=1",
		"/split":        "25% a 75% b /split",
		"/default":      "b /default",
		"http://svc/de": "404",
	} {
		if got := brief(p.Evaluate(captured("svc", path))); got != want {
			t.Errorf("%s: got %q, want %q", path, got, want)
		}
	}
	if got := p.Evaluate(evaluator.Request{Destination: netip.MustParseAddrPort("10.0.0.1:81"), Captured: true}); got.Listener != "" {
		t.Errorf("a port without listener is taken by %s", got.Listener)
	}
}

// brief is what an outcome comes to: status, location, clusters, host, path.
func brief(o evaluator.Outcome) string {
	var out strings.Builder
	if o.Status != 0 {
		return strings.TrimSpace(fmt.Sprintf("%d %s", o.Status, o.Location))
	}
	for _, s := range o.Shares {
		if s.Percent < 100 {
			fmt.Fprintf(&out, "%v%% ", s.Percent)
		}
		out.WriteString(s.Cluster)
		if o.Host != "svc" {
			out.WriteString("@" + o.Host)
		}
		out.WriteString(" ")
	}
	return out.String() + o.Path
}

func TestTCP(t *testing.T) {
	p, err := evaluator.ReadV1(evaluator.V1Answers{
		Clusters: []byte(`{"clusters": [
			{"name": "a", "type": "static", "lb_type": "random", "connect_timeout_ms": 1, "hosts": [{"url": "tcp://127.0.0.1:1"}]},
			{"name": "b", "type": "static", "lb_type": "random", "connect_timeout_ms": 1, "hosts": [{"url": "tcp://127.0.0.1:2"}]}]}`),
		Listeners: []byte(`{"listeners": [{"name": "tcp", "address": "tcp://0.0.0.0:9000", "filters": [{"name": "tcp_proxy", "config": {
			"stat_prefix": "tcp", "route_config": {"routes": [
				{"cluster": "a", "destination_ip_list": ["10.1.0.0/16"]}, {"cluster": "b", "destination_ip_list": ["10.1.2.0/24", "10.2.0.0/16"]}]}}}]}]}`),
	})
	if err != nil {
		t.Fatal(err)
	}
	for ip, want := range map[string]string{"10.1.2.3": "a", "10.2.2.3": "b", "10.3.0.1": ""} {
		var got string
		for _, s := range p.Evaluate(evaluator.Request{Destination: netip.AddrPortFrom(netip.MustParseAddr(ip), 9000)}).Shares {
			got = s.Cluster
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: (-want +got):\n%s", ip, d)
		}
	}
}
