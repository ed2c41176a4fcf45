package compile_test

import (
	"fmt"
	"testing"

	"github.com/pilot-api/pilot-api/compile"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// TestRulesHoldWhereTheirHostIsNotDeclared: a rule that denies a host holds at every HTTP
// port, whoever declares the host at another one.
func TestRulesHoldWhereTheirHostIsNotDeclared(t *testing.T) {
	entry := func(namespace, host, protocol string, number int, exportTo ...string) *schema.Object {
		return objectIn(t, namespace, "ServiceEntry", "declares", spec{
			"hosts": []string{host}, "resolution": "STATIC", "endpoints": []spec{{"address": "10.66.0.1"}}, "exportTo": exportTo,
			"ports": []spec{{"number": number, "name": "port", "protocol": protocol}},
		})
	}
	const host, root = "bad.example.net", "istio-system"
	for _, of := range []struct {
		name, ruled, host string
		in                string // the namespace of the rule
		declared          []*schema.Object
	}{
		{"by nobody", host, host, root, nil},
		{"elsewhere, HTTP", host, host, root, []*schema.Object{entry("evil", host, "HTTP", 9000)}},
		{"elsewhere, at the proxy's own port", host, host, root, []*schema.Object{entry("evil", host, "HTTP", 15001)}},
		{"elsewhere, TCP", host, host, root, []*schema.Object{entry("evil", host, "TCP", 9000)}},
		{"elsewhere, TLS", host, host, root, []*schema.Object{entry("evil", host, "TLS", 443)}},
		{"elsewhere, UDP", host, host, root, []*schema.Object{entry("evil", host, "UDP", 80)}},
		{"elsewhere, for the callers", host, host, root, []*schema.Object{entry("evil", host, "HTTP", 9000, "default")}},
		{"elsewhere, for others", host, host, root, []*schema.Object{entry("evil", host, "HTTP", 80, ".")}},
		{"in the callers' namespace", host, host, "default", []*schema.Object{entry("default", host, "HTTP", 9000)}},
		{"in the callers' namespace, TLS", host, host, "default", []*schema.Object{entry("default", host, "TLS", 443)}},
		{"by an EgressRule", host, host, root, []*schema.Object{objectIn(t, "evil", "EgressRule", "opens", spec{
			"destination": spec{"service": host}, "ports": []spec{{"port": 9000, "protocol": "http"}},
		})}},
		{"a host under the wildcard of the rule", "*.example.net", host, root, []*schema.Object{entry("evil", host, "HTTP", 9000)}},
		{"the wildcard of the rule", "*.example.net", host, root, []*schema.Object{entry("evil", "*.example.net", "HTTP", 9000)}},
		{"a wildcard over the host", host, host, root, []*schema.Object{entry("evil", "*.example.net", "HTTP", 9000)}},
		{"a name of the mesh, elsewhere", "a.default.svc.cluster.local", "a", "default", []*schema.Object{entry("evil", "a.default.svc.cluster.local", "HTTP", 9000)}},
		{"a host that a Sidecar keeps back", host, host, "default", []*schema.Object{entry("evil", host, "HTTP", 9080),
			object(t, "Sidecar", "few", spec{"egress": []spec{{"hosts": []string{"./*"}}}})}},
	} {
		for _, mode := range []mesh.OutboundMode{mesh.AllowAny, mesh.RegistryOnly} {
			t.Run(of.name+"/"+string(mode), func(t *testing.T) {
				rule := objectIn(t, of.in, "VirtualService", "deny", spec{"hosts": []string{of.ruled}, "http": []spec{{"directResponse": spec{"status": 403}}}})
				objs := append([]*schema.Object{rule, object(t, "ServiceEntry", "other", spec{
					"hosts": []string{"other.default.svc.cluster.local"}, "resolution": "STATIC", "endpoints": []spec{{"address": "10.1.0.1"}},
					"ports": []spec{{"number": 9080, "name": "http", "protocol": "HTTP"}},
				})}, of.declared...)
				settings := mesh.DefaultSettings()
				settings.OutboundTrafficPolicy, settings.ProxyHTTPPort = mode, 15002
				s := mesh.NewSnapshot(1, settings, objs)
				config, _ := compile.Proxy(s, s.TraitsOf(proxy(t, "sidecar~10.9.0.1~a.default~default.svc.cluster.local")))
				for _, table := range []string{"80", "9080", compile.ProxyTable} {
					requireDenied(t, config, table, of.host)
				}
			})
		}
	}
}

// requireDenied wants every request for a host to be answered with 403 by a table.
func requireDenied(t *testing.T, config *ir.Config, table, host string) {
	t.Helper()
	for _, of := range config.RouteTables {
		if of.Name != table {
			continue
		}
		to := virtualHost(of, host)
		for _, wildcard := range []string{"*.example.net"} {
			if to == nil || to.Domains[0] == "*" {
				to = virtualHost(of, wildcard)
			}
		}
		if to == nil || len(to.Routes) != 1 || to.Routes[0].Response == nil || to.Routes[0].Response.Status != 403 {
			t.Errorf("table %s: requests to %s have %+v", table, host, to)
		}
		return
	}
	t.Errorf("there is no table %s", table)
}

// TestRulesOfSettledHosts: the namespace in the name of a host says which ports it has.
// Rules for it hold there and at port 80, and cost no more if others open ports.
func TestRulesOfSettledHosts(t *testing.T) {
	service := func(name string, numbers ...int) *schema.Object {
		var ports []spec
		for _, n := range numbers {
			ports = append(ports, spec{"number": n, "name": fmt.Sprintf("http-%d", n), "protocol": "HTTP"})
		}
		return object(t, "ServiceEntry", name, spec{
			"hosts": []string{name + ".default.svc.cluster.local"}, "location": "MESH_INTERNAL", "resolution": "STATIC",
			"ports": ports, "endpoints": []spec{{"address": "10.1.0.1"}},
		})
	}
	numbers := []int{80}
	for n := range 80 {
		numbers = append(numbers, 2000+n)
	}
	settings := mesh.DefaultSettings()
	settings.Budget = mesh.Budget{Object: 1000, Mesh: 10000}
	s := mesh.NewSnapshot(1, settings, []*schema.Object{
		service("shop", 9080), service("crowd", numbers...),
		object(t, "VirtualService", "shop", spec{"hosts": []string{"shop"}, "http": []spec{{"directResponse": spec{"status": 403}}}}),
	})
	c := compile.NewCompiler()
	c.Advance(s)
	config, _ := c.Proxy(s.TraitsOf(proxy(t, "sidecar~10.9.0.1~a.default~default.svc.cluster.local")))
	for _, table := range config.RouteTables {
		want := "allow_any"
		if table.Name == "80" || table.Name == "9080" {
			requireDenied(t, config, table.Name, "shop.default")
			continue
		}
		if to := virtualHost(table, "shop.default"); to == nil || to.Name != want {
			t.Errorf("at port %s requests go to %+v, want %s", table.Name, to, want)
		}
	}
	if problems := c.Problems(); len(problems) > 0 {
		t.Errorf("the rule has problems: %v", problems)
	}
}

// TestWildcardIsNotRepeated: a rule for a wildcard has one virtual host at each port for
// callers that follow it, however many hosts beneath it other rules name for others. The
// hosts, and their short forms, are domains of that one.
func TestWildcardIsNotRepeated(t *testing.T) {
	const n = 40
	var named []string
	for i := range n {
		named = append(named, fmt.Sprintf("h%d.default.svc.cluster.local", i), fmt.Sprintf("*.h%d.default.svc.cluster.local", i))
	}
	deny := []spec{{"directResponse": spec{"status": 403}}}
	objs := []*schema.Object{
		object(t, "Sidecar", "default", spec{"egress": []spec{{"hosts": []string{"*/*"}}}}), // The callers' namespace is known.
		objectIn(t, "istio-system", "VirtualService", "all", spec{"hosts": []string{"*.local"}, "http": deny}),
		objectIn(t, "third", "VirtualService", "many", spec{"hosts": named, "exportTo": []string{"."}, "http": []spec{{"directResponse": spec{"status": 418}}}}),
	}
	for _, caller := range []struct {
		node  string
		hosts int // virtual hosts of the rules
		many  int // the status for the named hosts
	}{
		{"sidecar~10.9.0.1~a.default~default.svc.cluster.local", 1, 403},
		{"sidecar~10.9.0.1~a.third~third.svc.cluster.local", 1 + 2*n, 418},
	} {
		config, _ := compiled(t, caller.node, objs)
		for _, table := range config.RouteTables {
			if table.Name != "80" {
				continue
			}
			ruled := 0
			for _, host := range table.VirtualHosts {
				if len(host.Routes) == 1 && host.Routes[0].Response != nil && host.Routes[0].Response.Status != 502 {
					ruled++
				}
			}
			if ruled != caller.hosts {
				t.Errorf("%s: %d virtual hosts of the rules, want %d", caller.node, ruled, caller.hosts)
			}
			for _, name := range append(named, "*.local") {
				want := caller.many
				if name == "*.local" {
					want = 403
				}
				to := virtualHost(table, name)
				if to == nil || to.Routes[0].Response == nil || to.Routes[0].Response.Status != want {
					t.Fatalf("%s: %s leads to %+v", caller.node, name, to)
				}
			}
			if short := virtualHost(table, "h7"); caller.many == 403 && (short == nil || short.Routes[0].Response == nil || short.Routes[0].Response.Status != 403) {
				t.Errorf("%s: h7 leads to %+v", caller.node, short)
			}
		}
	}
}
