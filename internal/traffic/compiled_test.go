package traffic_test

import (
	"slices"
	"testing"

	"github.com/pilot-api/pilot-api/compile"
	"github.com/pilot-api/pilot-api/envoy/envoytest"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// startCompiled runs an Envoy on what a node is told of objects. Route tables
// are in their listeners, and endpoints in their clusters, as there is nobody to
// ask.
func startCompiled(t *testing.T, settings *mesh.Settings, node, text string) *envoytest.Envoy {
	t.Helper()
	var objs []*schema.Object
	for _, doc := range schema.Split([]byte(text), "objects.yaml") {
		found, problems, _ := doc.Objects(t.Context(), schema.DefaultNamespace)
		if err := problems.Err(); err != nil {
			t.Fatal(err)
		}
		objs = append(objs, found...)
	}
	who, err := mesh.ParseProxy(node)
	if err != nil {
		t.Fatal(err)
	}
	snapshot := mesh.NewSnapshot(1, settings, objs)
	compiled, _ := compile.Proxy(snapshot, snapshot.View(who))
	return envoytest.Start(t, inOnePiece(snapshot, compiled))
}

// inlined is a listener with its table; nil for none.
func inlined(l *ir.HTTPListener, tables map[string]*ir.RouteTable) *ir.HTTPListener {
	if l == nil || l.Inline != nil {
		return l
	}
	out := *l
	out.Inline = tables[l.Table]
	return &out
}

func inOnePiece(snapshot *mesh.Snapshot, compiled *ir.Config) *ir.Config {
	out := *compiled
	tables := map[string]*ir.RouteTable{}
	for _, table := range out.RouteTables {
		tables[table.Name] = table
	}
	out.RouteTables, out.Listeners, out.Clusters = nil, nil, nil
	for _, l := range compiled.Listeners {
		l := *l
		l.HTTP = inlined(l.HTTP, tables)
		l.Chains = slices.Clone(l.Chains)
		for i, chain := range l.Chains {
			own := *chain
			own.HTTP = inlined(own.HTTP, tables)
			l.Chains[i] = &own
		}
		out.Listeners = append(out.Listeners, &l)
	}
	for _, c := range compiled.Clusters {
		c := *c
		if c.Type == ir.Registry {
			c.Type = ir.StaticHosts
			for _, i := range snapshot.Endpoints(mesh.ParseServiceKey(c.EndpointKey)) {
				c.Hosts = append(c.Hosts, ir.Endpoint{Host: i.Address, Port: i.EndpointPort, Zone: i.Zone, Weight: i.Weight, Labels: i.Labels})
			}
			c.Hosts = c.Order.Arranged(c.Hosts)
		}
		out.Clusters = append(out.Clusters, &c)
	}
	return &out
}
