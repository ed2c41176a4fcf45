package envoy_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/pilot-api/pilot-api/envoy/envoytest"
	v3 "github.com/pilot-api/pilot-api/envoy/v3"
	"github.com/pilot-api/pilot-api/internal/envoylimits/headerformat"
	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/internal/selfsigned"
)

// A refusal is a row for a rule of v3.Refusals. It has resources just inside and just outside
// the bounds of the rule, as JSON.
type refusal struct {
	about  string
	as     func(*testing.T, string) v3.Message
	inside []string
	// Both Envoy and v3.Check refuse what is outside. Envoy takes what is apart, and v3.Check
	// refuses it, for the reason that the row gives.
	outside, apart []string
}

func refusals() []refusal {
	const text = `"match":{"prefix":"/"}`
	route := func(fields string) string { return `{` + text + `,"route":{"cluster":"c"},` + fields + `}` }
	forward := func(fields string) string { return `{` + text + `,"route":{` + fields + `}}` }
	header := func(key, value string) string {
		return route(fmt.Sprintf(`"request_headers_to_add":[{"header":{"key":%q,"value":%q}}]`, key, value))
	}
	static := func(fields string) string {
		return `{"name":"c","connect_timeout":"1s","type":"STATIC",` + fields + `}`
	}
	endpoint := func(host string) string {
		return fmt.Sprintf(`{"endpoint":{"address":{"socket_address":{"address":%q,"port_value":80}}}}`, host)
	}
	dns := func(endpoints ...string) string {
		return fmt.Sprintf(`{"name":"c","connect_timeout":"1s","type":"LOGICAL_DNS","load_assignment":{"cluster_name":"c","endpoints":[{"lb_endpoints":[%s]}]}}`, strings.Join(endpoints, ","))
	}
	const tls = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3."
	client := func(fields string) string {
		return static(fmt.Sprintf(`"transport_socket":{"name":"tls","typed_config":{"@type":%q,%s}}`, tls+"UpstreamTlsContext", fields))
	}
	chain := func(match, socket string) string {
		return `{"filters":[{"name":"tcp","typed_config":{"@type":"type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy","stat_prefix":"tcp","cluster":"c"}}]` + match + socket + `}`
	}
	listener := func(ip string, chains ...string) string {
		return fmt.Sprintf(`{"name":"l","address":{"socket_address":{"address":%q,"port_value":10001}},"filter_chains":[%s]}`, ip, strings.Join(chains, ","))
	}
	matching := func(matches ...string) string {
		var chains []string
		for _, m := range matches {
			chains = append(chains, chain(`,"filter_chain_match":{`+m+`}`, ""))
		}
		return listener("127.0.0.1", chains...)
	}
	server := func(common string) string {
		return listener("127.0.0.1", chain("", fmt.Sprintf(`,"transport_socket":{"name":"tls","typed_config":{"@type":%q%s}}`, tls+"DownstreamTlsContext", common)))
	}
	const certificate = `"common_tls_context":{"tls_certificates":[{"certificate_chain":{"filename":"tls.crt"},"private_key":{"filename":"tls.key"}}]}`
	ciphers := func(names string) string {
		return strings.Replace(certificate, `{"tls_cert`, `{"tls_params":{"cipher_suites":[`+names+`]},"tls_cert`, 1)
	}
	manager := func(fields string) string {
		return listener("127.0.0.1", `{"filters":[{"name":"http","typed_config":{"@type":"type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager","stat_prefix":"http","route_config":{},"http_filters":[{"name":"router","typed_config":{"@type":"type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"}}],`+fields+`}}]}`)
	}
	hosts := func(domains ...string) string {
		var out []string
		for i, d := range domains {
			out = append(out, fmt.Sprintf(`{"name":"h%d","domains":[%q]}`, i, d))
		}
		return `{"name":"80","virtual_hosts":[` + strings.Join(out, ",") + `]}`
	}
	answering := func(size int, bound string) string {
		return fmt.Sprintf(`{"name":"80"%s,"virtual_hosts":[{"name":"h","domains":["*"],"routes":[{%s,"direct_response":{"status":200,"body":{"inline_string":%q}}}]}]}`, bound, text, strings.Repeat("x", size))
	}
	weights := func(ws ...uint32) string {
		var out []string
		for i, w := range ws {
			out = append(out, fmt.Sprintf(`{"name":"c%d","weight":%d}`, i, w))
		}
		return forward(`"weighted_clusters":{"clusters":[` + strings.Join(out, ",") + `]}`)
	}
	return []refusal{
		{about: "duration", as: one[routev3.Route],
			inside:  []string{forward(`"cluster":"c","timeout":"9223372035.999999999s"`), forward(`"cluster":"c","timeout":"0s"`)},
			outside: []string{forward(`"cluster":"c","timeout":"9223372036s"`), forward(`"cluster":"c","timeout":"-0.000000001s"`), forward(`"cluster":"c","timeout":"315576000000s"`)}},
		{about: "regular expression", as: one[routev3.Route],
			inside: []string{`{"match":{"safe_regex":{"regex":"\\pL"}},"route":{"cluster":"c"}}`},
			outside: []string{`{"match":{"safe_regex":{"regex":"\\p{Letter}"}},"route":{"cluster":"c"}}`,
				route(`"typed_per_filter_config":{"cors":{"@type":"type.googleapis.com/envoy.extensions.filters.http.cors.v3.CorsPolicy","allow_origin_string_match":[{"safe_regex":{"regex":"\\x{100}"}}]}}`)}},
		{about: "header to write", as: one[routev3.Route],
			inside: []string{header("x-host", "100%%"), header("te", ""), header("connection", "é"), header("x", strings.Join(headerformat.Examples(), " "))},
			outside: []string{header("host", "a"), header("Host", "a"), header(":authority", "a"), header(":path", "a"), header("x", "100%"), header("x", "%REQ()%"), header("x", "%FILE_CONTENT(/etc/hostname)%"),
				forward(`"weighted_clusters":{"clusters":[{"name":"c","weight":1,"response_headers_to_add":[{"header":{"key":":status","value":"200"}}]}]}`)},
			// What is on the machine, and what no proxy of ours has.
			apart: []string{header("x", "%ENVIRONMENT(HOME)%")}},
		{about: "headers to remove from a route", as: one[routev3.Route],
			inside:  []string{route(`"request_headers_to_remove":["x","te"]`)},
			outside: []string{route(`"request_headers_to_remove":["Host"]`), route(`"response_headers_to_remove":[":status"]`)}},
		{about: "headers to remove for a cluster", as: one[routev3.Route],
			inside:  []string{forward(`"weighted_clusters":{"clusters":[{"name":"c","weight":1,"request_headers_to_remove":["x"]}]}`)},
			outside: []string{forward(`"weighted_clusters":{"clusters":[{"name":"c","weight":1,"request_headers_to_remove":["host"]}]}`)}},
		{about: "headers to remove from a virtual host", as: one[routev3.RouteConfiguration],
			inside:  []string{`{"virtual_hosts":[{"name":"h","domains":["*"],"response_headers_to_remove":["x"]}]}`},
			outside: []string{`{"virtual_hosts":[{"name":"h","domains":["*"],"response_headers_to_remove":["host"]}]}`}},
		{about: "route table", as: one[routev3.RouteConfiguration],
			inside: []string{hosts("a", "*", "*.a", "a.*"), hosts("a:80", "a"), answering(4096, ""), answering(5000, `,"max_direct_response_body_size_bytes":5000`)},
			outside: []string{hosts("a", "A"), hosts("*", "*"), hosts("*.a", "*.A"), answering(4097, ""),
				answering(5001, `,"max_direct_response_body_size_bytes":5000`)}},
		{about: "weighted clusters", as: one[routev3.Route],
			inside:  []string{weights(math.MaxUint32), weights(0, 1), weights(math.MaxUint32-1, 1)},
			outside: []string{weights(0), weights(0, 0), weights(math.MaxUint32, 1)}},
		{about: "mirror", as: one[routev3.Route],
			inside:  []string{forward(`"cluster":"c","request_mirror_policies":[{"cluster":"m"}]`)},
			outside: []string{forward(`"cluster":"c","request_mirror_policies":[{}]`)}},
		{about: "forwarding", as: one[routev3.Route],
			inside: []string{forward(`"cluster":"c","prefix_rewrite":"/","upgrade_configs":[{"upgrade_type":"websocket"}]`)},
			outside: []string{forward(`"cluster":"c","prefix_rewrite":"/","regex_rewrite":{"pattern":{"regex":"a"},"substitution":"b"}`),
				forward(`"cluster":"c","upgrade_configs":[{"upgrade_type":"websocket"},{"upgrade_type":"WebSocket"}]`)}},
		{about: "retry back-off", as: one[routev3.Route],
			inside:  []string{forward(`"cluster":"c","retry_policy":{"retry_on":"5xx","retry_back_off":{"base_interval":"1s","max_interval":"1s"}}`)},
			outside: []string{forward(`"cluster":"c","retry_policy":{"retry_on":"5xx","retry_back_off":{"base_interval":"1s","max_interval":"0.9s"}}`)}},
		{about: "upgrades of a listener", as: one[listenerv3.Listener],
			inside:  []string{manager(`"upgrade_configs":[{"upgrade_type":"websocket"},{"upgrade_type":"x"}]`)},
			outside: []string{manager(`"upgrade_configs":[{"upgrade_type":"websocket"},{"upgrade_type":"websocket"}]`)}},
		{about: "outlier detection", as: one[clusterv3.Cluster],
			inside: []string{static(`"outlier_detection":{"base_ejection_time":"60s","max_ejection_time":"60s"}`), static(`"outlier_detection":{"max_ejection_time":"30s"}`),
				static(`"outlier_detection":{"base_ejection_time":"600s"}`)},
			outside: []string{static(`"outlier_detection":{"base_ejection_time":"61s","max_ejection_time":"60s"}`), static(`"outlier_detection":{"max_ejection_time":"29s"}`)}},
		{about: "cluster", as: one[clusterv3.Cluster],
			inside: []string{static(`"load_assignment":{"cluster_name":"c","endpoints":[{"lb_endpoints":[` + endpoint("::1") + `,` + endpoint("192.0.2.1") + `]}]}`), dns(endpoint("a.b"))},
			outside: []string{static(`"load_assignment":{"cluster_name":"c","endpoints":[{"lb_endpoints":[` + endpoint("a.b") + `]}]}`),
				static(`"load_assignment":{"cluster_name":"c","endpoints":[{"lb_endpoints":[` + endpoint("1.2.3") + `]}]}`), dns(endpoint("a"), endpoint("b"))}},
		{about: "ring", as: one[clusterv3.Cluster],
			inside:  []string{static(`"lb_policy":"RING_HASH","ring_hash_lb_config":{"minimum_ring_size":10,"maximum_ring_size":10}`), static(`"lb_policy":"RING_HASH","ring_hash_lb_config":{"maximum_ring_size":1024}`)},
			outside: []string{static(`"lb_policy":"RING_HASH","ring_hash_lb_config":{"minimum_ring_size":11,"maximum_ring_size":10}`), static(`"lb_policy":"RING_HASH","ring_hash_lb_config":{"maximum_ring_size":1023}`)}},
		{about: "table of Maglev", as: one[clusterv3.Cluster],
			inside:  []string{static(`"lb_policy":"MAGLEV","maglev_lb_config":{"table_size":251}`), static(`"lb_policy":"MAGLEV","maglev_lb_config":{}`)},
			outside: []string{static(`"lb_policy":"MAGLEV","maglev_lb_config":{"table_size":250}`)}},
		{about: "server name asked for", as: one[clusterv3.Cluster],
			inside: []string{client(`"sni":"é b"`), client(`"sni":"` + strings.Repeat("a", 255) + `"`)},
			// The second is a declared constraint.
			outside: []string{client(`"sni":"a\u0000"`), client(`"sni":"` + strings.Repeat("a", 256) + `"`)}},
		{about: "verification of a peer", as: one[clusterv3.Cluster],
			inside: []string{client(`"common_tls_context":{"validation_context":{"trusted_ca":{"filename":"tls.crt"},"match_typed_subject_alt_names":[{"san_type":"DNS","matcher":{"exact":"a"}}]}}`),
				client(`"common_tls_context":{"validation_context":{"trusted_ca":{"filename":"authority.crt"},"crl":{"filename":"authority.crl"}}}`)},
			outside: []string{client(`"common_tls_context":{"validation_context":{"match_typed_subject_alt_names":[{"san_type":"DNS","matcher":{"exact":"a"}}]}}`),
				client(`"common_tls_context":{"validation_context":{"system_root_certs":{},"match_typed_subject_alt_names":[{"san_type":"DNS","matcher":{"exact":"a"}}]}}`),
				client(`"common_tls_context":{"validation_context":{"crl":{"filename":"authority.crl"}}}`)}},
		{about: "ALPN", as: one[clusterv3.Cluster],
			inside:  []string{client(`"common_tls_context":{"alpn_protocols":["` + strings.Repeat("a", 255) + `"]}`)},
			outside: []string{client(`"common_tls_context":{"alpn_protocols":["` + strings.Repeat("a", 256) + `"]}`), client(`"common_tls_context":{"alpn_protocols":["` + strings.Repeat(strings.Repeat("a", 255)+`","`, 256) + `a"]}`)}},
		{about: "ciphers", as: one[listenerv3.Listener],
			inside: []string{server("," + ciphers(`"`+strings.Join(v3.Ciphers(), `","`)+`"`)), server("," + ciphers(`"AES128-SHA","AES128-SHA"`))},
			outside: []string{server("," + ciphers(`"RC4-SHA"`)), server("," + ciphers(`"AES128-SHA","ECDHE-RSA-AES256-SHA1"`)),
				server("," + ciphers(`"TLS_AES_128_GCM_SHA256"`)), server("," + ciphers(`"ecdhe-rsa-aes128-sha"`))},
			// Words for many, of which each build of Envoy knows its own.
			apart: []string{server("," + ciphers(`"ALL"`))}},
		{about: "TLS of a server", as: one[listenerv3.Listener],
			inside: []string{server("," + certificate)}, outside: []string{server("")}},
		{about: "listener", as: one[listenerv3.Listener],
			inside: []string{listener("::", chain("", "")), matching(`"prefix_ranges":[{"address_prefix":"10.0.0.0","prefix_len":8}]`, ``), matching(`"server_names":["a"]`, `"server_names":["b"]`),
				matching(`"transport_protocol":"tls"`, `"application_protocols":["h2"]`)},
			outside: []string{listener("localhost", chain("", "")), listener("127.0.0.1"), matching(``, ``),
				matching(`"prefix_ranges":[{"address_prefix":"10.0.0.0","prefix_len":8}]`, `"prefix_ranges":[{"address_prefix":"10.1.0.0","prefix_len":8}]`),
				matching(`"prefix_ranges":[{"address_prefix":"10.0.0.0","prefix_len":8},{"address_prefix":"10.0.0.0","prefix_len":8}]`),
				matching(`"server_names":["a"]`, `"server_names":["b","A"]`), matching(`"transport_protocol":"tls"`, `"transport_protocol":"tls"`)}},
		{about: "filter chain match", as: one[listenerv3.Listener],
			inside: []string{matching(`"server_names":["*.a","a","*.*.b"]`)}, outside: []string{matching(`"server_names":["*"]`), matching(`"server_names":["*a"]`), matching(`"server_names":["a*b"]`)}},
		{about: "address block", as: one[listenerv3.Listener],
			inside:  []string{matching(`"prefix_ranges":[{"address_prefix":"::1","prefix_len":128}]`)},
			outside: []string{matching(`"prefix_ranges":[{"address_prefix":"localhost","prefix_len":8}]`)}},
		{about: "endpoints", as: one[endpointv3.ClusterLoadAssignment],
			inside:  []string{`{"cluster_name":"c","endpoints":[{"lb_endpoints":[` + endpoint("192.0.2.1") + `]}]}`},
			outside: []string{`{"cluster_name":"c","endpoints":[{"lb_endpoints":[` + endpoint("a.b") + `]}]}`}},
	}
}

func one[T any, M interface {
	*T
	v3.Message
}](t *testing.T, text string) v3.Message {
	t.Helper()
	out := M(new(T))
	if err := protojson.Unmarshal([]byte(text), out); err != nil {
		t.Fatalf("%v: %.200s", err, text)
	}
	return out
}

// TestRefusals compares each rule of the list with a real Envoy. It fails if a newer Envoy has
// other bounds.
func TestRefusals(t *testing.T) {
	outside.Slow(t)
	program := outside.Tool(t, "envoy")
	dir := t.TempDir()
	selfsigned.Write(t, filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"))
	selfsigned.NewAuthority(t, dir).Revoke(t)
	var about []string
	for _, r := range refusals() {
		about = append(about, r.about)
		t.Run(r.about, func(t *testing.T) {
			for _, text := range r.inside {
				m := r.as(t, text)
				if err := v3.Check(m); err != nil {
					t.Errorf("refused here: %v: %.300s", err, text)
				}
				if why := envoyRefuses(t, program, dir, m); why != "" {
					t.Errorf("Envoy refuses %.300s: %s", text, why)
				}
			}
			for _, text := range slices.Concat(r.outside, r.apart) {
				if v3.Check(r.as(t, text)) == nil {
					t.Errorf("taken here: %.300s", text)
				}
			}
			for _, text := range r.outside {
				if envoyRefuses(t, program, dir, r.as(t, text)) == "" {
					t.Errorf("Envoy takes %.300s", text)
				}
			}
			for _, text := range r.apart {
				if why := envoyRefuses(t, program, dir, r.as(t, text)); why != "" {
					t.Errorf("Envoy refuses %.300s as well: %s", text, why)
				}
			}
		})
	}
	listed := v3.Refusals()
	slices.Sort(listed)
	slices.Sort(about)
	if !slices.Equal(listed, about) {
		t.Errorf("rules with a row %v, want all of %v", about, listed)
	}
}

// envoyRefuses returns why an Envoy refuses a resource, or "" if it takes the resource.
func envoyRefuses(t *testing.T, program, dir string, m v3.Message) string {
	t.Helper()
	var r envoytest.Resources
	switch m := m.(type) {
	case *routev3.Route:
		r.Routes = append(r.Routes, &routev3.RouteConfiguration{
			Name: "80", ValidateClusters: wrapperspb.Bool(false),
			VirtualHosts: []*routev3.VirtualHost{{Name: "all", Domains: []string{"*"}, Routes: []*routev3.Route{m}}},
		})
	case *routev3.RouteConfiguration:
		r.Routes = append(r.Routes, m)
	case *clusterv3.Cluster:
		r.Clusters = append(r.Clusters, m)
	case *listenerv3.Listener:
		r.Listeners = append(r.Listeners, m)
	case *endpointv3.ClusterLoadAssignment:
		r.Clusters = append(r.Clusters, clusterFromFile(t, m))
	}
	said, err := outside.Validate(t.Context(), program, dir, envoytest.Standalone(t, r))
	if err != nil || bytes.Contains(said, []byte("rejected")) {
		return fmt.Sprintf("%v %.2000s", err, said)
	}
	return ""
}

// clusterFromFile returns a cluster that reads its endpoints from a file, as if they came by
// discovery.
func clusterFromFile(t *testing.T, m *endpointv3.ClusterLoadAssignment) *clusterv3.Cluster {
	t.Helper()
	resource, err := protojson.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	fields := map[string]any{}
	if err := json.Unmarshal(resource, &fields); err != nil {
		t.Fatal(err)
	}
	fields["@type"] = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"
	text, err := json.Marshal(map[string]any{"version_info": "1", "resources": []any{fields}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "endpoints.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return &clusterv3.Cluster{
		Name: m.GetClusterName(), ConnectTimeout: durationpb.New(time.Second),
		ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_EDS},
		EdsClusterConfig: &clusterv3.Cluster_EdsClusterConfig{EdsConfig: &corev3.ConfigSource{
			ResourceApiVersion:    corev3.ApiVersion_V3,
			ConfigSourceSpecifier: &corev3.ConfigSource_PathConfigSource{PathConfigSource: &corev3.PathConfigSource{Path: file}},
		}},
	}
}
