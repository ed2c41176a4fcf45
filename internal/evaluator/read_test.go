package evaluator_test

import (
	"strings"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/pilot-api/pilot-api/internal/evaluator"
)

// TestV1Refuses what Envoy would refuse, and what nobody here knows.
func TestV1Refuses(t *testing.T) {
	const a = `{"name": "a", "type": "original_dst", "lb_type": "original_dst_lb", "connect_timeout_ms": 1}`
	clusters := func(list string) evaluator.V1Answers {
		return evaluator.V1Answers{Clusters: []byte(`{"clusters": [` + list + `]}`), Listeners: []byte(`{"listeners": []}`)}
	}
	inline := func(routeConfig string) evaluator.V1Answers {
		out := clusters(a)
		out.Listeners = []byte(`{"listeners": [{"name": "l", "address": "tcp://0.0.0.0:80", "filters": [{"name": "http_connection_manager",
			"config": {"codec_type": "auto", "stat_prefix": "x", "filters": [{"name": "router", "config": {}}], "route_config": ` + routeConfig + `}}]}]}`)
		return out
	}
	route := func(fields string) evaluator.V1Answers {
		return inline(`{"virtual_hosts": [{"name": "h", "domains": ["*"], "routes": [{"prefix": "/", ` + fields + `}]}]}`)
	}
	for want, answers := range map[string]evaluator.V1Answers{
		`unknown field "cleanup_interval_ms"`:     clusters(`{"name": "a", "cleanup_interval_ms": 1}`),
		"must have a name of its own":             clusters(a + "," + a),
		"there is no answer for its key k":        clusters(`{"name": "a", "type": "sds", "service_name": "k", "lb_type": "random", "connect_timeout_ms": 1}`),
		`unknown field "cluster_header"`:          route(`"cluster_header": "x"`),
		"cluster b is not among":                  route(`"cluster": "b"`),
		"weights must sum to 100, found 1":        route(`"weighted_clusters": {"clusters": [{"name": "a", "weight": 1}]}`),
		"exactly one of prefix, path":             route(`"path": "/", "cluster": "a"`),
		"must redirect, answer or go to clusters": route(`"timeout_ms": 0`),
		`"%START_TIME%" has a variable`:           route(`"cluster": "a", "request_headers_to_add": [{"key": "x", "value": "%START_TIME%"}]`),
		"domain X must occur only once":           inline(`{"virtual_hosts": [{"name": "h", "domains": ["x"], "routes": []}, {"name": "i", "domains": ["X"], "routes": []}]}`),
		"a star at the start only":                inline(`{"virtual_hosts": [{"name": "h", "domains": ["x.*"], "routes": []}]}`),
		`unknown field "internal_only_headers"`:   inline(`{"virtual_hosts": [], "internal_only_headers": []}`),
	} {
		if _, err := evaluator.ReadV1(answers); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error with %q, got %v", want, err)
		}
	}
}

// TestV3Refuses likewise.
func TestV3Refuses(t *testing.T) {
	cluster := func(text string) evaluator.V3Resources {
		return evaluator.V3Resources{Clusters: []*clusterv3.Cluster{parse(t, text, &clusterv3.Cluster{})}}
	}
	table := func(text string) evaluator.V3Resources {
		return evaluator.V3Resources{Routes: []*routev3.RouteConfiguration{parse(t, text, &routev3.RouteConfiguration{})}}
	}
	route := func(fields string) evaluator.V3Resources {
		return table(`{"name": "80", "virtual_hosts": [{"name": "h", "domains": ["*"], "routes": [{"match": {"prefix": "/"}, ` + fields + `}]}]}`)
	}
	for want, resources := range map[string]evaluator.V3Resources{
		"alt_stat_name, which is not known here":              cluster(`{"name": "a", "type": "STATIC", "alt_stat_name": "b"}`),
		"there is no answer for its key k":                    cluster(`{"name": "a", "type": "EDS", "eds_cluster_config": {"service_name": "k"}}`),
		"family AUTO is not known here":                       cluster(`{"name": "a", "type": "STRICT_DNS"}`),
		"cluster_header, which is not known here":             route(`"route": {"cluster_header": "x"}`),
		"response_headers_to_remove, which is not known here": table(`{"name": "80", "response_headers_to_remove": ["x"]}`),
		"https_redirect, which is not known here":             route(`"redirect": {"https_redirect": true}`),
		"must have a filter chain": {Listeners: []*listenerv3.Listener{parse(t,
			`{"name": "l", "address": {"socket_address": {"address": "0.0.0.0", "port_value": 80}}}`, &listenerv3.Listener{})}},
	} {
		if _, err := evaluator.ReadV3(resources); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error with %q, got %v", want, err)
		}
	}
}

func parse[M proto.Message](t *testing.T, text string, into M) M {
	t.Helper()
	if err := protojson.Unmarshal([]byte(text), into); err != nil {
		t.Fatal(err)
	}
	return into
}
