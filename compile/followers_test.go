package compile_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pilot-api/pilot-api/compile"
	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// shopHost belongs to namespace shop.
const shopHost = "cart.shop.svc.cluster.local"

// TestOldRulesOfOtherNamespaces: a RouteRule or DestinationPolicy for a host of another
// namespace binds callers of its own namespace alone, as a VirtualService does, and says
// so. Nothing that it is made of takes a request from callers of others.
func TestOldRulesOfOtherNamespaces(t *testing.T) {
	entry := func(namespace, host, address string) *schema.Object {
		name, _, _ := strings.Cut(host, ".")
		return objectIn(t, namespace, "ServiceEntry", name, spec{
			"hosts": []string{host}, "location": "MESH_INTERNAL", "resolution": "STATIC",
			"ports":     []spec{{"number": 80, "name": "http", "protocol": "HTTP"}},
			"endpoints": []spec{{"address": address}},
		})
	}
	services := []*schema.Object{
		entry("shop", shopHost, "10.1.0.1"), entry("shop", "front.shop.svc.cluster.local", "10.1.0.2"),
		entry("other", "caller.other.svc.cluster.local", "10.1.0.3"), entry("third", "caller.third.svc.cluster.local", "10.1.0.4"),
	}
	to := spec{"service": shopHost}
	of := func(host string) spec { return spec{"source": spec{"service": host}} }
	for _, test := range []struct {
		name, namespace, kind string
		spec                  spec
		follow                string // the namespaces whose callers follow it
		problem               string // "" for none of FollowedByFew
	}{
		{"a redirect", "other", "RouteRule", spec{"destination": to, "redirect": spec{"authority": "x.example"}},
			"other", "only callers in namespace other follow it: " + shopHost + " belongs to namespace shop: ServiceEntry shop/cart declares it"},
		{"the owner's redirect", "shop", "RouteRule", spec{"destination": to, "redirect": spec{"authority": "x.example"}}, "shop other third", ""},
		{"one of the root namespace", "istio-system", "RouteRule", spec{"destination": to, "redirect": spec{"authority": "x.example"}}, "shop other third", ""},
		{"for callers of its own", "other", "RouteRule", spec{"destination": to, "match": of("caller.other.svc.cluster.local"), "redirect": spec{"authority": "x.example"}}, "other", ""},
		{"for callers of the owner", "other", "RouteRule", spec{"destination": to, "match": of("front.shop.svc.cluster.local"), "redirect": spec{"authority": "x.example"}},
			"", "no caller follows it"},
		{"for callers of a third", "other", "RouteRule", spec{"destination": to, "match": of("caller.third.svc.cluster.local"), "redirect": spec{"authority": "x.example"}},
			"", "no caller follows it"},
		{"a policy", "other", "DestinationPolicy", spec{"destination": to, "loadBalancing": spec{"name": "RANDOM"}}, "other", "only callers in namespace other follow it"},
		{"the owner's policy", "shop", "DestinationPolicy", spec{"destination": to, "loadBalancing": spec{"name": "RANDOM"}}, "shop other third", ""},
		{"a policy for callers of the owner", "other", "DestinationPolicy", spec{"destination": to, "source": spec{"service": "front.shop.svc.cluster.local"}, "loadBalancing": spec{"name": "RANDOM"}},
			"", "no caller follows it"},
		{"one that is closed", "other", "RouteRule", spec{"destination": to, "route": []spec{{"destination": to, "weight": 30}, {"destination": to, "weight": 30}}},
			"other", "only callers in namespace other follow it"},
	} {
		t.Run(test.name, func(t *testing.T) {
			rule := objectIn(t, test.namespace, test.kind, "rule", test.spec)
			objects := append(slices.Clone(services), rule)
			ref := diag.Ref{Kind: test.kind, Namespace: test.namespace, Name: "rule"}
			var problems diag.List
			for caller, node := range map[string]string{
				"shop":  "sidecar~10.1.0.2~front.shop~shop.svc.cluster.local",
				"other": "sidecar~10.1.0.3~caller.other~other.svc.cluster.local",
				"third": "sidecar~10.1.0.4~caller.third~third.svc.cluster.local",
			} {
				config, found := compiled(t, node, objects)
				problems = found
				if got, want := bound(config, ref), strings.Contains(test.follow, caller); got != want {
					t.Errorf("a caller of %s follows it: %v, want %v", caller, got, want)
				}
				config, found = compiledAs(t, mesh.V1Compatibility{AnyNamespaceRules: true}, node, objects)
				ours := test.spec["match"] == nil && test.spec["source"] == nil
				if ours && (!bound(config, ref) || slices.ContainsFunc(found, few(ref))) {
					t.Errorf("with anyNamespaceRules a caller of %s does not follow it\n%v", caller, found)
				}
			}
			at := slices.IndexFunc(problems, few(ref))
			if (at >= 0) != (test.problem != "") || at >= 0 && !strings.Contains(problems[at].Message, test.problem) {
				t.Errorf("want the problem %q in\n%v", test.problem, problems)
			}
		})
	}
}

// TestForeignCatchAllHidesNothing: a catch-all of another namespace takes no requests of
// the owner's rule after it, which therefore has no problem.
func TestForeignCatchAllHidesNothing(t *testing.T) {
	to := spec{"service": shopHost}
	_, problems := compiled(t, "sidecar~10.1.0.2~front.shop~shop.svc.cluster.local", []*schema.Object{
		objectIn(t, "shop", "ServiceEntry", "cart", spec{
			"hosts": []string{shopHost}, "location": "MESH_INTERNAL", "resolution": "STATIC",
			"ports": []spec{{"number": 80, "name": "http", "protocol": "HTTP"}}, "endpoints": []spec{{"address": "10.1.0.1"}},
		}),
		objectIn(t, "other", "RouteRule", "rule", spec{"destination": to, "precedence": 9, "redirect": spec{"authority": "x.example"}}),
		objectIn(t, "third", "RouteRule", "rule", spec{"destination": to, "precedence": 3}),
		objectIn(t, "shop", "RouteRule", "rule", spec{"destination": to, "precedence": 2, "httpReqTimeout": spec{"simpleTimeout": spec{"timeout": "3s"}}}),
	})
	for _, p := range problems {
		if p.Code != diag.FollowedByFew {
			t.Error(p)
		}
	}
}

func few(of diag.Ref) func(diag.Problem) bool {
	return func(p diag.Problem) bool { return p.Object == of && p.Code == diag.FollowedByFew }
}

// bound reports whether any part of a configuration comes from an object.
func bound(config *ir.Config, by diag.Ref) bool {
	for _, c := range config.Clusters {
		if slices.Contains(c.Origins, by) {
			return true
		}
	}
	for _, table := range config.RouteTables {
		for _, host := range table.VirtualHosts {
			for _, route := range host.Routes {
				if slices.Contains(route.Origins, by) {
					return true
				}
			}
		}
	}
	return false
}

// TestForeignRulesTakeNobody: whatever a namespace declares about the address of another
// namespace's proxy, callers of others do not follow its rules, nor does the workload that
// the rules are for.
func TestForeignRulesTakeNobody(t *testing.T) {
	to := spec{"service": shopHost}
	entry := func(namespace, name, host, address string) *schema.Object {
		return objectIn(t, namespace, "ServiceEntry", name, spec{
			"hosts": []string{host}, "location": "MESH_INTERNAL", "resolution": "STATIC",
			"ports":     []spec{{"number": 80, "name": "http", "protocol": "HTTP"}},
			"endpoints": []spec{{"address": address}},
		})
	}
	objects := []*schema.Object{
		entry("shop", "cart", shopHost, "10.1.0.1"),
		entry("evil", "claim", "claim.evil.svc.cluster.local", "10.1.0.9"),
		objectIn(t, "evil", "RouteRule", "take", spec{"destination": to, "precedence": 9, "redirect": spec{"authority": "x.example"}}),
		objectIn(t, "evil", "RouteRule", "sockets", spec{"destination": to, "precedence": 8, "websocketUpgrade": true}),
	}
	for _, node := range []string{
		"sidecar~10.1.0.9~x.x~cluster.local",                 // of no namespace, at an address that evil lists
		"sidecar~10.1.0.9~front.shop~shop.svc.cluster.local", // of the owner's
		"sidecar~10.1.0.1~cart.shop~shop.svc.cluster.local",  // the workload itself
	} {
		config, _ := compiled(t, node, objects)
		for _, name := range []string{"take", "sockets"} {
			if ref := (diag.Ref{Kind: "RouteRule", Namespace: "evil", Name: name}); bound(config, ref) || inListeners(config, ref) {
				t.Errorf("%s follows %v", node, ref)
			}
		}
	}
}

// inListeners reports whether a route within a listener comes from an object.
func inListeners(config *ir.Config, by diag.Ref) bool {
	for _, l := range config.Listeners {
		if l.HTTP == nil || l.HTTP.Inline == nil {
			continue
		}
		for _, host := range l.HTTP.Inline.VirtualHosts {
			for _, route := range host.Routes {
				if slices.Contains(route.Origins, by) {
					return true
				}
			}
		}
	}
	return false
}

// TestExportToOfManyHosts: exportTo holds however many hosts and namespaces a rule has.
func TestExportToOfManyHosts(t *testing.T) {
	var hosts, friends []string
	for i := range 40 {
		hosts = append(hosts, fmt.Sprintf("h%d.example", i))
	}
	for i := range 40 {
		friends = append(friends, fmt.Sprintf("friend-%d", i))
	}
	config, _ := compiled(t, "sidecar~10.1.0.2~a.stranger~stranger.svc.cluster.local", []*schema.Object{
		objectIn(t, "istio-system", "VirtualService", "friends", spec{"hosts": hosts, "exportTo": friends, "http": []spec{{"redirect": spec{"authority": "x.example"}}}}),
		objectIn(t, "istio-system", "VirtualService", "guard", spec{"hosts": hosts, "http": []spec{{"directResponse": spec{"status": 403}}}}),
	})
	if bound(config, vsRef("istio-system", "friends")) || !bound(config, vsRef("istio-system", "guard")) {
		t.Error("a stranger follows the rule for friends, or not the one for all")
	}
}

// TestPrivateServicesOwnNothingForOthers: a ServiceEntry that callers do not see does not
// make its namespace the owner of a host for them.
func TestPrivateServicesOwnNothingForOthers(t *testing.T) {
	const host = "api.partner.example"
	for _, guarded := range []string{"shop", "istio-system"} {
		config, _ := compiled(t, "sidecar~10.1.0.2~front.shop~shop.svc.cluster.local", []*schema.Object{
			objectIn(t, guarded, "VirtualService", "guard", spec{"hosts": []string{host}, "http": []spec{{"directResponse": spec{"status": 403}}}}),
			objectIn(t, "evil", "ServiceEntry", "private", spec{
				"hosts": []string{host}, "exportTo": []string{"."}, "resolution": "STATIC",
				"ports": []spec{{"number": 80, "name": "http", "protocol": "HTTP"}}, "endpoints": []spec{{"address": "10.6.6.6"}},
			}),
			objectIn(t, "evil", "VirtualService", "steal", spec{"hosts": []string{host}, "http": []spec{{"redirect": spec{"authority": "x.example"}}}}),
		})
		if bound(config, vsRef("evil", "steal")) || !bound(config, vsRef(guarded, "guard")) {
			t.Errorf("callers do not follow the guard of %s", guarded)
		}
	}
}

// TestForeignRulesOverBudget: however many rules of another namespace are withheld, they
// close a host only for callers of their own namespace.
func TestForeignRulesOverBudget(t *testing.T) {
	var ports, versions []spec
	for i := range 20 {
		ports = append(ports, spec{"number": 8000 + i, "name": fmt.Sprintf("http-%d", i), "protocol": "HTTP"})
		versions = append(versions, spec{"labels": spec{"version": fmt.Sprint(i)}, "weight": 5})
	}
	for _, rules := range []int{1, maxSourcesClosedApart + 2} {
		objects := []*schema.Object{objectIn(t, "shop", "ServiceEntry", "cart", spec{
			"hosts": []string{shopHost}, "location": "MESH_INTERNAL", "resolution": "STATIC", "ports": ports, "endpoints": []spec{{"address": "10.1.0.1"}},
		})}
		for i := range rules {
			rule := spec{"destination": spec{"service": shopHost}, "route": versions}
			if rules > 1 {
				rule["match"] = spec{"source": spec{"service": fmt.Sprintf("s%d.evil.svc.cluster.local", i)}}
				objects = append(objects, hostIn(t, "evil", fmt.Sprintf("s%d", i)))
			}
			objects = append(objects, objectIn(t, "evil", "RouteRule", fmt.Sprintf("large-%02d", i), rule))
		}
		settings := mesh.DefaultSettings()
		settings.Budget = mesh.Budget{Object: 300, Mesh: 100_000}
		s := mesh.NewSnapshot(1, settings, objects)
		for caller, node := range map[string]string{"shop": "sidecar~10.1.9.2~front.shop~shop.svc.cluster.local", "evil": "sidecar~10.1.0.1~x.evil~evil.svc.cluster.local"} {
			config, problems := compile.Proxy(s, s.TraitsOf(proxy(t, node)))
			if caller == "evil" && !slices.ContainsFunc(problems, func(p diag.Problem) bool { return p.Code == diag.OverBudget && p.Object.Name == "large-00" }) {
				t.Fatalf("no rule is over its budget:\n%v", problems)
			}
			closed := false
			for i := range rules {
				closed = closed || bound(config, diag.Ref{Kind: "RouteRule", Namespace: "evil", Name: fmt.Sprintf("large-%02d", i)})
			}
			if closed != (caller == "evil") {
				t.Errorf("%d rules of evil close the host for a caller of %s: %v", rules, caller, closed)
			}
		}
	}
}

// maxSourcesClosedApart is more than how many sources of withheld rules are closed apart.
const maxSourcesClosedApart = 8
