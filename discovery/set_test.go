package discovery

import (
	"strings"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/envoy/v3"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
)

// cluster is good with a connect timeout above 0 only.
func cluster(name string, connect time.Duration) entry {
	return entry{name: name, origin: diag.Ref{Kind: "RouteRule", Name: name}, message: &clusterv3.Cluster{Name: name, ConnectTimeout: durationpb.New(connect)}}
}

// TestSetClosesWhatIsRefused: what stands there is what the entry says, whatever
// was good before.
func TestSetClosesWhatIsRefused(t *testing.T) {
	p := newPool(10, nil)
	closes := cluster("b", -1)
	closes.closed = func() v3.Message { return cluster("b", 3).message }
	s := newSet(p, ClusterType, []entry{cluster("a", 2), closes, cluster("c", -1)})
	b, err := p.resource(ClusterType, "b", cluster("b", 3).message)
	switch {
	case err != nil:
		t.Fatal(err)
	case s.named("a") == nil:
		t.Error("the good one is not there")
	case s.named("b") != b:
		t.Error("the bad one is not closed")
	case s.named("c") != nil:
		t.Error("a bad one was served")
	}
	if len(s.problems) != 2 || !strings.Contains(s.problems[0].Message, "is closed") || !strings.Contains(s.problems[1].Message, "left out") {
		t.Errorf("problems: %v", s.problems)
	}
}

func TestSetHasUniqueNames(t *testing.T) {
	s := newSet(newPool(10, nil), ClusterType, []entry{cluster("a", 1), cluster("a", 2)})
	if len(s.sorted) != 1 || len(s.problems) != 1 {
		t.Errorf("%d resources, problems %v", len(s.sorted), s.problems)
	}
}

func TestPoolSharesAcrossGenerations(t *testing.T) {
	before := &generation{pool: newPool(10, nil)}
	one, err := before.pool.resource(ClusterType, "a", cluster("a", 1).message)
	if err != nil {
		t.Fatal(err)
	}
	next := newPool(1, before)
	if again, _ := next.resource(ClusterType, "a", cluster("a", 1).message); again != one {
		t.Error("an unchanged resource was encoded again")
	}
	if _, err := next.resource(ClusterType, "b", cluster("b", 1).message); err != nil || len(next.now) != 1 {
		t.Errorf("a full pool: %v, %d resources", err, len(next.now))
	}
}

func TestEmptied(t *testing.T) {
	full := &view{config: &ir.Config{Clusters: []*ir.Cluster{{}}, RouteTables: []*ir.RouteTable{{}}}}
	noRoutes := &view{config: &ir.Config{Clusters: []*ir.Cluster{{}}}}
	onlyRoutes := &view{config: &ir.Config{RouteTables: []*ir.RouteTable{{}}}}
	empty := &view{config: &ir.Config{}}
	with := func(p mesh.Protocol, exportTo ...string) *mesh.Snapshot {
		return &mesh.Snapshot{Settings: mesh.DefaultSettings(), Services: []*mesh.Service{{Namespace: "a", ExportTo: exportTo, Ports: []*mesh.Port{{Protocol: p}}}}}
	}
	cases := []struct {
		about     string
		mesh      *mesh.Snapshot
		role      mesh.Role
		old, next *view
		refused   bool
	}{
		{"all services are gone", &mesh.Snapshot{Settings: mesh.DefaultSettings()}, mesh.Sidecar, full, empty, false},
		{"routes lost with HTTP services there", with(mesh.HTTP), mesh.Sidecar, full, noRoutes, true},
		{"the last HTTP service is gone", with(mesh.TCP), mesh.Sidecar, full, noRoutes, false},
		{"only clusters are gone", with(mesh.HTTP), mesh.Sidecar, full, onlyRoutes, false},
		{"the last service became another namespace's own", with(mesh.HTTP, "."), mesh.Sidecar, full, empty, false},
		{"an ingress without rules", with(mesh.HTTP), mesh.Ingress, full, empty, false},
		{"nothing before", with(mesh.HTTP), mesh.Sidecar, empty, empty, false},
	}
	for _, c := range cases {
		if err := wouldEmpty(c.mesh, mesh.Proxy{Role: c.role, Domain: "default.svc.cluster.local"}, c.old, c.next); (err != nil) != c.refused {
			t.Errorf("%s: %v, want refused %v", c.about, err, c.refused)
		}
	}
}
