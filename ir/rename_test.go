package ir_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pilot-api/pilot-api/ir"
)

// TestRenameClusters: every mention follows, and what mentions none is not
// copied, nor is anything changed that others may share.
func TestRenameClusters(t *testing.T) {
	to := func(names ...string) *ir.Route {
		r := &ir.Route{}
		if names[0] != "" {
			r.Mirrors = []ir.Mirror{{Cluster: names[0], PerMillion: ir.Million}}
		}
		for _, name := range names[1:] {
			r.Clusters = append(r.Clusters, ir.WeightedCluster{Name: name, Weight: 1})
		}
		return r
	}
	table := func(routes ...*ir.Route) *ir.RouteTable {
		return &ir.RouteTable{Name: "80", IgnorePort: true, VirtualHosts: []*ir.VirtualHost{{Name: "v", Domains: []string{"d"}, Routes: routes}}}
	}
	tcp := func(cluster string) *ir.Listener {
		return &ir.Listener{TCP: &ir.TCPListener{Routes: []ir.TCPRoute{{Cluster: cluster}}}}
	}
	given := func() *ir.Config {
		return &ir.Config{
			Clusters:    []*ir.Cluster{{Name: "a"}, {Name: "b"}, {Name: "c"}},
			RouteTables: []*ir.RouteTable{table(to("", "b", "a"), to("a", "c")), table(to("", "b"))},
			Listeners:   []*ir.Listener{tcp("a"), tcp("b")},
		}
	}
	before := given()
	c := *before
	c.RenameClusters(map[string]string{"a": "x"})
	want := &ir.Config{
		Clusters:    []*ir.Cluster{{Name: "b"}, {Name: "c"}, {Name: "x"}},
		RouteTables: []*ir.RouteTable{table(to("", "b", "x"), to("x", "c")), table(to("", "b"))},
		Listeners:   []*ir.Listener{tcp("x"), tcp("b")},
	}
	if diff := cmp.Diff(want, &c); diff != "" {
		t.Errorf("renamed (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(given(), before); diff != "" {
		t.Errorf("what was given (-want +got):\n%s", diff)
	}
	if c.RouteTables[1] != before.RouteTables[1] || c.Listeners[1] != before.Listeners[1] || c.Clusters[0] != before.Clusters[1] {
		t.Error("what names no renamed cluster was copied")
	}
}
