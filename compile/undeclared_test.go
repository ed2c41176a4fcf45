package compile_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pilot-api/pilot-api/compile"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// TestWithheldRulesOfNobodysHosts: no request passes a VirtualService that is withheld
// as an unknown host, whether its hosts have room for themselves or not.
func TestWithheldRulesOfNobodysHosts(t *testing.T) {
	for _, of := range []struct {
		hosts, objects int
		unknown        string // the virtual host of all other hosts
		effect         string
	}{
		{3, 1, "allow_any", "requests that it would route are answered with 503"},
		{40, 1, "block_all", "refuse requests to all hosts that they do not know"},
		{10, 9, "block_all", "refuse requests to all hosts that they do not know"}, // together
	} {
		t.Run(fmt.Sprintf("%d of each of %d", of.hosts, of.objects), func(t *testing.T) {
			settings := mesh.DefaultSettings()
			settings.Budget = mesh.Budget{Object: 100, Mesh: 1000}
			var objs []*schema.Object
			for i := range of.objects {
				objs = append(objs, object(t, "VirtualService", fmt.Sprintf("deny-%d", i), spec{
					"hosts": texts(of.hosts, fmt.Sprintf("h%%d.d%d.example.com", i)), "exportTo": []string{"."}, "http": manyRoutes(60),
				}))
			}
			s := mesh.NewSnapshot(1, settings, append(objs, webService(t)))
			c := compile.NewCompiler()
			c.Advance(s)
			here, _ := c.Proxy(s.View(proxy(t, "sidecar~10.9.0.1~a.default~default.svc.cluster.local")))
			for _, table := range here.RouteTables {
				if table.Name == compile.ProxyTable {
					continue
				}
				requireRefused(t, table, "h0.d0.example.com")
				if last := virtualHost(table, "no.example"); last == nil || last.Name != of.unknown {
					t.Errorf("%s: unknown hosts have %v, want %s", table.Name, last, of.unknown)
				}
			}
			if here.RouteTables[0].Name != "80" {
				t.Errorf("the first table is %s, want 80", here.RouteTables[0].Name)
			}
			elsewhere, _ := c.Proxy(s.View(proxy(t, "sidecar~10.9.0.1~a.other~other.svc.cluster.local")))
			for _, table := range elsewhere.RouteTables {
				if last := virtualHost(table, "no.example"); table.Name != compile.ProxyTable && (last == nil || last.Name != "allow_any") {
					t.Errorf("%s of another namespace: unknown hosts have %v", table.Name, last)
				}
			}
			told := false
			for _, p := range c.Problems() {
				told = told || strings.Contains(p.Message, of.effect)
			}
			if !told {
				t.Errorf("no problem says %q: %v", of.effect, c.Problems())
			}
		})
	}
}

func requireRefused(t *testing.T, table *ir.RouteTable, host string) {
	t.Helper()
	to := virtualHost(table, host)
	if to == nil {
		t.Fatalf("%s: nothing is for %s", table.Name, host)
	}
	for _, r := range to.Routes {
		if r.Response == nil || r.Response.Status < 500 {
			t.Errorf("%s: requests to %s have the route %v", table.Name, host, r)
		}
	}
}

// virtualHost is that of a host without a port, or else the one of all other hosts.
func virtualHost(table *ir.RouteTable, host string) (last *ir.VirtualHost) {
	for _, of := range table.VirtualHosts {
		for _, domain := range of.Domains {
			switch domain {
			case host:
				return of
			case "*":
				last = of
			}
		}
	}
	return last
}
