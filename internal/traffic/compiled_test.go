package traffic_test

import (
	"slices"
	"testing"

	"github.com/pilot-api/pilot-api/compile"
	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/envoy/envoytest"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// Most tests run the Envoy of one of these proxies.
const (
	callerNode = "sidecar~" + envoytest.ProxyIP + "~caller.default~default.svc.cluster.local"
	routerNode = "router~" + envoytest.ProxyIP + "~edge~default.svc.cluster.local"
)

// startCompiled compiles objects for a proxy and runs an Envoy with the result. The Envoy
// calls the endpoints that the objects declare.
func startCompiled(t *testing.T, settings *mesh.Settings, node, objects string) *envoytest.Envoy {
	t.Helper()
	snapshot := parsedMesh(t, settings, objects)
	cfg, _ := compile.Proxy(snapshot, viewOf(t, snapshot, node))
	return envoytest.Start(t, withEndpoints(snapshot, withTables(cfg)))
}

// compiledFor compiles objects for a proxy.
func compiledFor(t *testing.T, settings *mesh.Settings, node, objects string) (*ir.Config, diag.List) {
	t.Helper()
	snapshot := parsedMesh(t, settings, objects)
	return compile.Proxy(snapshot, viewOf(t, snapshot, node))
}

// parsedMesh returns a mesh with the objects of a YAML text. A problem of an object fails
// the test.
func parsedMesh(t *testing.T, settings *mesh.Settings, text string) *mesh.Snapshot {
	t.Helper()
	var objects []*schema.Object
	for _, doc := range schema.Split([]byte(text), "objects.yaml") {
		found, problems, _ := doc.Objects(t.Context(), schema.DefaultNamespace)
		if err := problems.Err(); err != nil {
			t.Fatal(err)
		}
		objects = append(objects, found...)
	}
	return mesh.NewSnapshot(1, settings, objects)
}

func viewOf(t *testing.T, snapshot *mesh.Snapshot, node string) mesh.Traits {
	t.Helper()
	proxy, err := mesh.ParseProxy(node)
	if err != nil {
		t.Fatal(err)
	}
	return snapshot.TraitsOf(proxy)
}

// selfContained returns a configuration that asks no server: the route tables are in their
// listeners, and each cluster has a backend of its own, which has the cluster's name.
func selfContained(t *testing.T, cfg *ir.Config) *ir.Config {
	t.Helper()
	out := withTables(cfg)
	out.Clusters = nil
	for _, c := range cfg.Clusters {
		out.Clusters = append(out.Clusters, envoytest.StartBackend(t, c.Name).Cluster())
	}
	return out
}

// withTables returns a configuration whose listeners contain their route tables.
func withTables(cfg *ir.Config) *ir.Config {
	out := *cfg
	tables := map[string]*ir.RouteTable{}
	for _, table := range cfg.RouteTables {
		tables[table.Name] = table
	}
	out.RouteTables, out.Listeners = nil, nil
	for _, l := range cfg.Listeners {
		own := *l
		own.HTTP = withTable(l.HTTP, tables)
		own.Chains = slices.Clone(l.Chains)
		for i, c := range l.Chains {
			chain := *c
			chain.HTTP = withTable(c.HTTP, tables)
			own.Chains[i] = &chain
		}
		out.Listeners = append(out.Listeners, &own)
	}
	return &out
}

func withTable(h *ir.HTTPListener, tables map[string]*ir.RouteTable) *ir.HTTPListener {
	if h == nil || h.Inline != nil {
		return h
	}
	out := *h
	out.Inline, out.Table = tables[h.Table], ""
	return &out
}

// withEndpoints returns a configuration whose clusters contain the endpoints that the mesh
// has for them.
func withEndpoints(snapshot *mesh.Snapshot, cfg *ir.Config) *ir.Config {
	out := *cfg
	out.Clusters = nil
	for _, c := range cfg.Clusters {
		c := *c
		if c.Type == ir.Registry {
			c.Type = ir.StaticHosts
			for _, i := range snapshot.Endpoints(mesh.ParseServiceKey(c.EndpointKey)) {
				c.Hosts = append(c.Hosts, ir.Endpoint{Host: i.Address, Port: i.EndpointPort, Zone: i.Zone, Weight: i.Weight, Labels: i.Labels, MutualTLS: i.MutualTLS})
			}
			c.Hosts = c.Order.Arranged(c.Hosts)
		}
		out.Clusters = append(out.Clusters, &c)
	}
	return &out
}
