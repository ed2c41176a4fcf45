package envoytest

import (
	"testing"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"sigs.k8s.io/yaml"

	"github.com/pilot-api/pilot-api/envoy"
	v3 "github.com/pilot-api/pilot-api/envoy/v3"
	"github.com/pilot-api/pilot-api/ir"
)

// Resources are the v3 resources of one proxy, without endpoints.
type Resources struct {
	Clusters  []*clusterv3.Cluster
	Listeners []*listenerv3.Listener
	Routes    []*routev3.RouteConfiguration
}

// Encode returns the resources that package v3 makes of a configuration, for a proxy at
// ProxyIP.
func Encode(cfg *ir.Config) Resources {
	var r Resources
	r.Clusters, _ = v3.Clusters(cfg)
	r.Listeners, _ = v3.Listeners(cfg, ProxyIP)
	for _, table := range cfg.RouteTables {
		routes, _ := v3.Routes(table)
		r.Routes = append(r.Routes, routes)
	}
	return r
}

// Standalone returns a bootstrap of package envoy that has all of the resources in it, and
// asks no server for more. Each route table is in a listener of its own.
func Standalone(t *testing.T, r Resources) []byte {
	t.Helper()
	options := envoy.DefaultBootstrap()
	options.NodeID, options.Server, options.API = "sidecar~"+ProxyIP+"~web-1.shop~shop.svc.cluster.local", "http://127.0.0.1:8080", envoy.REST
	text, err := envoy.Bootstrap(options)
	if err != nil {
		t.Fatal(err)
	}
	b := ParseBootstrap(t, text)
	b.DynamicResources = nil
	b.StaticResources.Clusters = append(b.StaticResources.Clusters, r.Clusters...)
	b.StaticResources.Listeners = r.Listeners
	for i, routes := range r.Routes {
		b.StaticResources.Listeners = append(b.StaticResources.Listeners, routeListener(t, 20000+i, routes))
	}
	return BootstrapText(t, b)
}

// ParseBootstrap reads a bootstrap in JSON or YAML. An unknown field fails the test.
func ParseBootstrap(t *testing.T, text []byte) *bootstrapv3.Bootstrap {
	t.Helper()
	text, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		t.Fatal(err)
	}
	b := &bootstrapv3.Bootstrap{}
	if err := protojson.Unmarshal(text, b); err != nil {
		t.Fatal(err)
	}
	return b
}

// BootstrapText returns a bootstrap in JSON.
func BootstrapText(t *testing.T, b *bootstrapv3.Bootstrap) []byte {
	t.Helper()
	text, err := protojson.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// routeListener returns a listener as package v3 spells it, with the routes in it.
func routeListener(t *testing.T, port int, routes *routev3.RouteConfiguration) *listenerv3.Listener {
	t.Helper()
	empty := &ir.Config{Listeners: []*ir.Listener{
		{IP: "127.0.0.1", Port: port, HTTP: &ir.HTTPListener{Inline: &ir.RouteTable{}}},
	}}
	encoded, _ := v3.Listeners(empty, ProxyIP)
	config := encoded[0].GetFilterChains()[0].GetFilters()[0].GetTypedConfig()
	manager := &hcmv3.HttpConnectionManager{}
	if err := config.UnmarshalTo(manager); err != nil {
		t.Fatal(err)
	}
	manager.RouteSpecifier = &hcmv3.HttpConnectionManager_RouteConfig{RouteConfig: routes}
	if err := config.MarshalFrom(manager); err != nil {
		t.Fatal(err)
	}
	return encoded[0]
}
