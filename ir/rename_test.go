package ir_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pilot-api/pilot-api/ir"
)

// TestRenamed: every mention follows, and what mentions none is not copied, nor
// is anything changed that others may share.
func TestRenamed(t *testing.T) {
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
	host := func(routes ...*ir.Route) *ir.VirtualHost {
		return &ir.VirtualHost{Name: "h", Domains: []string{"d"}, Routes: routes}
	}
	tcp := func(cluster string) *ir.Listener {
		return &ir.Listener{TCP: &ir.TCPListener{Routes: []ir.TCPRoute{{Clusters: ir.Whole(cluster)}}}}
	}
	names := map[string]string{"a": "x"}
	given := host(to("", "b", "a"), to("a", "c"), to("", "b"))
	renamed := given.Renamed(names)
	if diff := cmp.Diff(host(to("", "b", "x"), to("x", "c"), to("", "b")), renamed); diff != "" {
		t.Errorf("renamed (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(host(to("", "b", "a"), to("a", "c"), to("", "b")), given); diff != "" {
		t.Errorf("what was given (-want +got):\n%s", diff)
	}
	if renamed.Routes[2] != given.Routes[2] {
		t.Error("a route that names no renamed cluster was copied")
	}
	if other := host(to("", "b")); other.Renamed(names) != other {
		t.Error("a virtual host that names no renamed cluster was copied")
	}
	listener, other := tcp("a"), tcp("b")
	if diff := cmp.Diff(tcp("x"), listener.Renamed(names)); diff != "" || listener.TCP.Routes[0].Clusters[0].Name != "a" {
		t.Errorf("renamed (-want +got):\n%s", diff)
	}
	if other.Renamed(names) != other {
		t.Error("a listener that names no renamed cluster was copied")
	}
}
