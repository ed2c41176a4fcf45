package compile_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/pilot-api/pilot-api/compile"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// within is what a proxy is told with little room, and what is withheld.
func within(t *testing.T, node string, objects ...*schema.Object) (*ir.Config, []string) {
	t.Helper()
	settings := mesh.DefaultSettings()
	settings.Budget = mesh.Budget{Object: 100, Mesh: 1000}
	s := mesh.NewSnapshot(1, settings, objects)
	config, problems := compile.Proxy(s, s.TraitsOf(proxy(t, node)))
	if err := ir.Validate(config); err != nil {
		t.Fatal(err)
	}
	return config, overBudget(problems)
}

const sidecarNode, ingressNode = "sidecar~10.9.0.1~a.default~default.svc.cluster.local", "ingress~10.9.0.2~i.default~default.svc.cluster.local"

// wideService has so many ports, and an instance beside the sidecar.
func wideService(t *testing.T, ports []spec) *schema.Object {
	return object(t, "ServiceEntry", "wide", spec{
		"hosts": []string{"wide.default.svc.cluster.local"}, "location": "MESH_INTERNAL", "resolution": "STATIC",
		"ports": ports, "endpoints": []spec{{"address": "10.9.0.1"}},
	})
}

func routeRule(t *testing.T, name string, precedence, destinations int, more spec) *schema.Object {
	s := spec{"destination": spec{"name": "wide"}, "precedence": precedence, "match": spec{"request": spec{"headers": spec{"uri": spec{"prefix": "/" + name}}}}}
	if destinations > 1 {
		s["route"] = repeated(destinations, func(i int) spec { return spec{"labels": spec{"v": fmt.Sprint(i)}, "weight": 100 / destinations} })
	}
	for k, v := range more {
		s[k] = v
	}
	return object(t, "RouteRule", name, s)
}

// operations are what a virtual host's routes are for, with ! behind those that are closed.
func operations(config *ir.Config, host string) []string {
	var out []string
	for _, table := range config.RouteTables {
		for _, h := range table.VirtualHosts {
			if h.Name != host {
				continue
			}
			for _, r := range h.Routes {
				name := r.Operation
				if r.Response != nil && *r.Response == *ir.Unavailable() {
					name += "!"
				}
				out = append(out, name)
			}
		}
	}
	return out
}

// TestRouteRulesWithheld: a rule that multiplies with the ports of its service to too much
// closes what its callers ask for and no rule before it takes, in one route.
func TestRouteRulesWithheld(t *testing.T) {
	caller := func(i int) spec {
		return spec{"match": spec{"source": spec{"name": fmt.Sprintf("caller-%d", i)}, "request": spec{"headers": spec{"uri": spec{"prefix": "/b"}}}}}
	}
	service := wideService(t, ports(10, "HTTP"))
	first, last := routeRule(t, "a", 3, 1, nil), routeRule(t, "c", 1, 1, nil)
	config, withheld := within(t, sidecarNode, service, first, last, routeRule(t, "b", 2, 20, nil))
	if want := []string{"RouteRule default/b"}; !slices.Equal(withheld, want) {
		t.Errorf("withheld are %q, want %q", withheld, want)
	}
	if got, want := operations(config, "wide.default.svc.cluster.local|p-3"), []string{"a", "b!"}; !slices.Equal(got, want) {
		t.Errorf("the routes are %q, want %q", got, want)
	}
	config, _ = within(t, sidecarNode, service, first, last, routeRule(t, "b", 2, 20, caller(0)))
	if got, want := operations(config, "wide.default.svc.cluster.local|p-3"), []string{"a", "c", "default-route"}; !slices.Equal(got, want) {
		t.Errorf("for others than its callers the routes are %q, want %q", got, want)
	}
	objects := []*schema.Object{service, first, last}
	for i := range 12 {
		objects = append(objects, routeRule(t, fmt.Sprintf("b%d", i), 2, 20, caller(i)))
	}
	config, _ = within(t, sidecarNode, objects...)
	if got := operations(config, "wide.default.svc.cluster.local|p-3"); len(got) != 2 || got[0] != "a" || got[1] != "b6!" {
		t.Errorf("with many kinds of callers the routes are %q; from b6 on, which is the ninth by name, all are refused", got)
	}
}

// TestEgressRulesWithheld: hosts of rules with too many ports are not opened, and no
// caller goes around them.
func TestEgressRulesWithheld(t *testing.T) {
	rule := func(name string, ports int) *schema.Object {
		return object(t, "EgressRule", name, spec{"destination": spec{"service": name + ".example"}, "ports": repeated(ports, func(i int) spec {
			return spec{"port": 7000 + i, "protocol": "http"}
		})})
	}
	config, withheld := within(t, sidecarNode, rule("few", 2), rule("many", 20))
	if want := []string{"EgressRule default/many"}; !slices.Equal(withheld, want) {
		t.Errorf("withheld are %q, want %q", withheld, want)
	}
	for _, table := range config.RouteTables {
		for _, h := range table.VirtualHosts {
			if h.Name != "few.example:7000" && h.Name != "few.example:7001" && h.Name != "block_all" {
				t.Errorf("table %s has the host %s", table.Name, h.Name)
			}
		}
	}
	closed := 0
	for _, l := range config.Listeners {
		if l.TCP == nil {
			continue
		}
		for _, r := range l.TCP.Routes {
			if r.Port >= 7000 && r.Port < 7020 && r.Clusters[0].Name == ir.Nobody {
				closed++
			}
		}
	}
	if closed != 20 {
		t.Errorf("connections are closed at %d of 20 ports", closed)
	}
}

// TestIngressRulesWithheld: a rule that has too many routes of its service is closed, and
// the rule that has few of another one is not.
func TestIngressRulesWithheld(t *testing.T) {
	ingress := func(name, service string) *schema.Object {
		return object(t, "IngressRule", name, spec{"destination": spec{"name": service}, "destinationPort": 1024, "match": spec{"request": spec{"headers": spec{"authority": spec{"exact": name + ".example"}}}}})
	}
	objects := append(manyServices(t, 1), wideService(t, ports(1, "HTTP")), ingress("much", "wide"), ingress("little", "s0"))
	for i := range 120 {
		objects = append(objects, routeRule(t, fmt.Sprintf("r%d", i), i, 1, nil))
	}
	config, withheld := within(t, ingressNode, objects...)
	if want := []string{"IngressRule default/much"}; !slices.Equal(withheld, want) {
		t.Errorf("withheld are %q, want %q", withheld, want)
	}
	routes := map[string]int{}
	for _, table := range config.RouteTables {
		for _, h := range table.VirtualHosts {
			for _, r := range h.Routes {
				routes[fmt.Sprint(r.Origins[0].Name, r.Response != nil)]++
			}
		}
	}
	if routes["muchtrue"] != 1 || routes["s0false"] != 1 || len(routes) != 2 {
		t.Errorf("the routes are %v", routes)
	}
}

// TestInboundRulesWithheld: of the rules for a workload's services, its proxy repeats as
// many at each port as there is room for, and allows no upgrade that others might.
func TestInboundRulesWithheld(t *testing.T) {
	objects := []*schema.Object{wideService(t, ports(10, "HTTP"))}
	for i := range 30 {
		objects = append(objects, routeRule(t, fmt.Sprintf("r%02d", i), i, 1, nil))
	}
	config, withheld := within(t, sidecarNode, objects...)
	if len(withheld) != 20 || slices.Contains(withheld, "RouteRule default/r09") || !slices.Contains(withheld, "RouteRule default/r10") {
		t.Errorf("withheld are %q, want all but the first ten", withheld)
	}
	tables := 0
	for _, l := range config.Listeners {
		if l.Direction != ir.Inbound || l.HTTP == nil || l.HTTP.Inline == nil {
			continue
		}
		tables++
		routes := l.HTTP.Inline.VirtualHosts[0].Routes
		if last := routes[len(routes)-1]; len(routes) != 11 || last.WebSocket != ir.UpgradeRefused {
			t.Errorf("%d routes, the last one is %+v", len(routes), last)
		}
	}
	if tables != 10 {
		t.Errorf("%d tables of 10 ports", tables)
	}
}
