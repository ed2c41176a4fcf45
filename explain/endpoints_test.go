package explain_test

import (
	"slices"
	"testing"

	"github.com/pilot-api/pilot-api/explain"
	"github.com/pilot-api/pilot-api/ir"
)

// TestEndpointsThatGetNothing: what an order of the cluster leaves out, the proxy is
// not told and nobody is shown.
func TestEndpointsThatGetNothing(t *testing.T) {
	table := &ir.RouteTable{Name: "80", VirtualHosts: []*ir.VirtualHost{{Name: "h", Domains: []string{"*"}, Routes: []*ir.Route{
		{Clusters: []ir.WeightedCluster{{Name: "web", Weight: 1}}},
	}}}}
	p := explain.Proxy{
		Config: &ir.Config{
			RouteTables: []*ir.RouteTable{table},
			Listeners:   []*ir.Listener{{IP: "0.0.0.0", Port: 80, Bind: true, HTTP: &ir.HTTPListener{Table: "80"}}},
			Clusters: []*ir.Cluster{{
				Name: "web", Type: ir.Registry, EndpointKey: "web.example|http",
				Order: &ir.Order{Shares: []ir.Share{{To: "eu/a/*", Weight: 100}}},
			}},
		},
		Members: func(string) []ir.Endpoint {
			return []ir.Endpoint{{Host: "10.1.0.1", Port: 80, Zone: "eu/a/1"}, {Host: "10.1.0.2", Port: 80, Zone: "eu/b/1"}}
		},
	}
	rows := p.Summary().Only("endpoints").Endpoints
	if len(rows) != 1 || rows[0].Address != "10.1.0.1:80" {
		t.Errorf("the table has %+v", rows)
	}
	e := ask(t, p, "http://web/", nil)
	if e.Forward == nil || !slices.Equal(e.Forward.Clusters[0].Endpoints, []string{"10.1.0.1:80"}) {
		t.Errorf("a request goes to %+v", e.Forward)
	}
}
