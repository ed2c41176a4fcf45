package bridge

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What the bridge does not know, or v1 refused, ends the round.
func TestRefused(t *testing.T) {
	const (
		cluster = `{"name": "c", "type": "static", "lb_type": "random", "connect_timeout_ms": 1, "hosts": [{"url": "tcp://127.0.0.1:1"}]`
		route   = `{"virtual_hosts": [{"name": "v", "domains": ["*"], "routes": [{"prefix": "/"`
		manager = `{"name": "l", "address": "tcp://127.0.0.1:1", "filters": [{"name": "http_connection_manager", "config":
			{"codec_type": "auto", "stat_prefix": "http", "route_config": {"virtual_hosts": []}`
	)
	for _, c := range []struct {
		name, clusters, listeners, routes string
		want                              string
	}{
		{name: "cluster field", clusters: cluster + `, "health_check": {}}`, want: `unknown field "health_check"`},
		{name: "cluster type", clusters: strings.Replace(cluster, "static", "hashed", 1) + "}", want: `clusters[0]: c: type "hashed"`},
		{name: "balancer", clusters: strings.Replace(cluster, "random", "ring_hash", 1) + "}", want: `lb_type "ring_hash"`},
		{name: "feature", clusters: cluster + `, "features": "http3"}`, want: `features "http3"`},
		{name: "TLS field", clusters: cluster + `, "ssl_context": {"crl_file": "x"}}`, want: `unknown field "crl_file"`},
		{name: "no host", clusters: `{"name": "c", "type": "static", "lb_type": "random"}`, want: "needs a host"},
		{name: "not asked", clusters: `{"name": "c", "type": "sds", "lb_type": "random"}`, want: "no answer of SDS"},
		{name: "host", clusters: strings.Replace(cluster, "tcp:", "unix:", 1) + "}", want: "not tcp://host:port"},
		{name: "route field", routes: route + `, "cluster": "c", "opaque_config": {}}]}]}`, want: `unknown field "opaque_config"`},
		{name: "weights", routes: route + `, "weighted_clusters": {"clusters": [{"name": "c", "weight": 99}]}}]}]}`, want: "sum to 99"},
		{name: "no target", routes: route + `}]}]}`, want: "routes/80: virtual_hosts[0]: v: routes[0]: a route has a cluster"},
		{name: "two targets", routes: route + `, "cluster": "c", "host_redirect": "h"}]}]}`, want: "excludes clusters"},
		{name: "two paths", routes: route + `, "path": "/", "cluster": "c"}]}]}`, want: "found 2"},
		{name: "query", routes: strings.Replace(route, "/", "/?a", 1) + `, "cluster": "c"}]}]}`, want: "reaches into the query"},
		{name: "mirror", routes: route + `, "cluster": "c", "shadow": {"cluster": "c", "runtime_key": "k"}}]}]}`, want: `unknown field "runtime_key"`},
		{name: "listener field", listeners: `{"transparent": true}`, want: `unknown field "transparent"`},
		{name: "filter", listeners: `{"name": "l", "address": "tcp://127.0.0.1:1", "filters": [{"name": "echo"}]}`, want: "listeners[0]: l: filter echo"},
		{name: "HTTP filter", listeners: manager + `, "filters": [{"name": "lua"}]}}]}`, want: "filters[0]: HTTP filter lua"},
		{name: "HTTP field", listeners: manager + `, "server_name": "x"}}]}`, want: `unknown field "server_name"`},
		{name: "trailing text", routes: `{"virtual_hosts": []} {}`, want: "something follows"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := &Answers{
				Clusters:  []byte(`{"clusters": [` + c.clusters + `]}`),
				Listeners: []byte(`{"listeners": [` + c.listeners + `]}`),
				Routes:    map[string][]byte{},
			}
			if c.routes != "" {
				a.Routes["80"] = []byte(c.routes)
			}
			_, err := Turn(a, func(string) string { return "" })
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got error %v, want one with %q", err, c.want)
			}
		})
	}
}

// A connection goes where v1 sent it: to the first route that fits.
func TestFirstTCPRoute(t *testing.T) {
	chains, err := turnTCP([]byte(`{"stat_prefix": "tcp", "route_config": {"routes": [
		{"cluster": "narrow", "destination_ip_list": ["10.1.1.0/24"]},
		{"cluster": "wide", "destination_ip_list": ["10.1.0.0/16"]},
		{"cluster": "never", "destination_ip_list": ["10.1.2.3/32"]},
		{"cluster": "other", "destination_ip_list": ["10.1.1.1/32", "10.2.0.0/16"]},
		{"cluster": "rest"},
		{"cluster": "late", "destination_ip_list": ["10.3.0.0/16"]}
	]}}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(chains)
	if err != nil {
		t.Fatal(err)
	}
	var got []struct {
		Match struct {
			Ranges []struct {
				Prefix string `json:"address_prefix"`
			} `json:"prefix_ranges"`
		} `json:"filter_chain_match"`
		Filters []struct {
			Config struct{ Cluster string } `json:"typed_config"`
		}
	}
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	routes := map[string][]string{}
	for _, chain := range got {
		prefixes := []string{}
		for _, r := range chain.Match.Ranges {
			prefixes = append(prefixes, r.Prefix)
		}
		routes[chain.Filters[0].Config.Cluster] = prefixes
	}
	want := map[string][]string{"narrow": {"10.1.1.0"}, "wide": {"10.1.0.0"}, "other": {"10.2.0.0"}, "rest": {}}
	if diff := cmp.Diff(want, routes); diff != "" {
		t.Error(diff)
	}
}
