package envoy_test

import (
	"encoding/json"
	"testing"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"github.com/rogpeppe/go-internal/txtar"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/pilot-api/pilot-api/envoy"
	v3 "github.com/pilot-api/pilot-api/envoy/v3"
	"github.com/pilot-api/pilot-api/ir"
)

// resources is all that a v3 Envoy is told.
type resources struct {
	clusters  []*clusterv3.Cluster
	listeners []*listenerv3.Listener
	routes    []*routev3.RouteConfiguration
}

func encodedV3(cfg *ir.Config) resources {
	var r resources
	r.clusters, _ = v3.Clusters(cfg)
	r.listeners, _ = v3.Listeners(cfg, proxyIP)
	for _, table := range cfg.RouteTables {
		routes, _ := v3.Routes(table)
		r.routes = append(r.routes, routes)
	}
	return r
}

// translation reads v3.json of an archive of package compile.
func translation(t *testing.T, file string) resources {
	t.Helper()
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var text struct{ Clusters, Listeners, Routes []json.RawMessage }
	for _, f := range archive.Files {
		if f.Name == "v3.json" {
			if err := json.Unmarshal(f.Data, &text); err != nil {
				t.Fatal(err)
			}
		}
	}
	return resources{
		parseAll[clusterv3.Cluster](t, text.Clusters),
		parseAll[listenerv3.Listener](t, text.Listeners),
		parseAll[routev3.RouteConfiguration](t, text.Routes),
	}
}

func parseAll[T any, M interface {
	*T
	proto.Message
}](t *testing.T, texts []json.RawMessage) []M {
	t.Helper()
	out := make([]M, len(texts))
	for i, text := range texts {
		out[i] = new(T)
		if err := protojson.Unmarshal(text, out[i]); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// standalone is our own bootstrap with all resources in it, each route table
// inline in a listener of its own.
func standalone(t *testing.T, r resources) []byte {
	t.Helper()
	text, err := envoy.Bootstrap(bootstrapOf(rest))
	if err != nil {
		t.Fatal(err)
	}
	b := parseBootstrap(t, text)
	b.DynamicResources = nil
	b.StaticResources.Clusters = append(b.StaticResources.Clusters, r.clusters...)
	b.StaticResources.Listeners = r.listeners
	for i, routes := range r.routes {
		b.StaticResources.Listeners = append(b.StaticResources.Listeners, routeListener(t, 20000+i, routes))
	}
	return bootstrapText(t, b)
}

func bootstrapText(t *testing.T, b *bootstrapv3.Bootstrap) []byte {
	t.Helper()
	text, err := protojson.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// routeListener is a listener as we spell it, with the routes in it.
func routeListener(t *testing.T, port int, routes *routev3.RouteConfiguration) *listenerv3.Listener {
	t.Helper()
	empty := &ir.Config{Listeners: []*ir.Listener{
		{IP: "127.0.0.1", Port: port, HTTP: &ir.HTTPListener{Inline: &ir.RouteTable{}}},
	}}
	encoded, _ := v3.Listeners(empty, proxyIP)
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
