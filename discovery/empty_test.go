package discovery

import (
	"testing"

	"github.com/pilot-api/pilot-api/discovery/compiled"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
)

func TestEmptied(t *testing.T) {
	full := &compiled.View{Config: &ir.Config{Clusters: []*ir.Cluster{{}}, RouteTables: []*ir.RouteTable{{}}}}
	noRoutes := &compiled.View{Config: &ir.Config{Clusters: []*ir.Cluster{{}}}}
	onlyRoutes := &compiled.View{Config: &ir.Config{RouteTables: []*ir.RouteTable{{}}}}
	empty := &compiled.View{Config: &ir.Config{}}
	with := func(p mesh.Protocol, exportTo ...string) *mesh.Snapshot {
		return &mesh.Snapshot{Settings: mesh.DefaultSettings(), Registry: &mesh.Registry{
			Services: []*mesh.Service{{Namespace: "a", ExportTo: exportTo, Ports: []*mesh.Port{{Protocol: p}}}},
		}}
	}
	cases := []struct {
		about     string
		mesh      *mesh.Snapshot
		role      mesh.Role
		old, next *compiled.View
		refused   bool
	}{
		{"all services are gone", &mesh.Snapshot{Settings: mesh.DefaultSettings(), Registry: &mesh.Registry{}}, mesh.Sidecar, full, empty, false},
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
