package compile_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
		{40, 1, "block_all", "refuse requests to all unknown hosts"},
		{10, 9, "block_all", "refuse requests to all unknown hosts"}, // together
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
			here, _ := c.Proxy(s.TraitsOf(proxy(t, "sidecar~10.9.0.1~a.default~default.svc.cluster.local")))
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
			elsewhere, _ := c.Proxy(s.TraitsOf(proxy(t, "sidecar~10.9.0.1~a.other~other.svc.cluster.local")))
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

// TestPortsOfNobodysHosts: hosts that nobody declares are routed at the ports that
// services had first. At the others nothing passes by the rule, and other callers pass on
// what they do not know.
func TestPortsOfNobodysHosts(t *testing.T) {
	at := func(o *schema.Object, year int) *schema.Object {
		meta := o.Meta
		meta.CreationTimestamp = metav1.NewTime(time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC))
		o, err := o.WithMeta(meta)
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	service := func(name string, year int, ports []spec) *schema.Object {
		return at(object(t, "ServiceEntry", name, spec{
			"hosts": []string{name + ".default.svc.cluster.local"}, "location": "MESH_INTERNAL", "resolution": "STATIC", "ports": ports, "endpoints": []spec{{"address": "10.1.0.1"}},
		}), year)
	}
	first := []spec{{"number": 9000, "name": "http", "protocol": "HTTP"}}
	objects := []*schema.Object{
		service("first", 2000, first), service("crowd", 2001, ports(100, "HTTP")),
		object(t, "VirtualService", "nobodys", spec{"hosts": []string{"nobody.example"}, "exportTo": []string{"."}, "http": manyRoutes(1)}),
	}
	s := mesh.NewSnapshot(1, mesh.DefaultSettings(), objects)
	c := compile.NewCompiler()
	c.Advance(s)
	here, _ := c.Proxy(s.TraitsOf(proxy(t, "sidecar~10.9.0.1~a.default~default.svc.cluster.local")))
	elsewhere, _ := c.Proxy(s.TraitsOf(proxy(t, "sidecar~10.9.0.1~a.other~other.svc.cluster.local")))
	routed, refused := 0, 0
	for _, table := range here.RouteTables {
		switch to := virtualHost(table, "nobody.example"); to.Name {
		case "nobody.example:" + table.Name:
			routed++
		case "block_all":
			if refused++; table.Name == "80" || table.Name == "9000" {
				t.Errorf("nothing is routed at port %s", table.Name)
			}
		default:
			t.Errorf("at port %s requests go to %s", table.Name, to.Name)
		}
	}
	if routed != 64 || refused != 38 {
		t.Errorf("the host is routed at %d ports and refused at %d", routed, refused)
	}
	for _, table := range elsewhere.RouteTables {
		if to := virtualHost(table, "nobody.example"); to.Name != "allow_any" {
			t.Errorf("for callers that do not follow the rule requests go to %s at port %s", to.Name, table.Name)
		}
	}
	told := false
	for _, p := range c.Problems() {
		told = told || p.Object.Name == "nobodys" && strings.Contains(p.Message, "at 38 HTTP ports")
	}
	if !told {
		t.Errorf("no problem says so: %v", c.Problems())
	}
}
