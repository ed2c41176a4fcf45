package compile_test

import (
	"slices"
	"strings"
	"testing"

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
	tooMuch := func() []spec {
		var out []spec
		for range 4000 {
			out = append(out, spec{"destination": to, "weight": 0, "labels": spec{"version": strings.Repeat("v", 60)}})
		}
		return out
	}
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
			"", "nobody follows it"},
		{"for callers of a third", "other", "RouteRule", spec{"destination": to, "match": of("caller.third.svc.cluster.local"), "redirect": spec{"authority": "x.example"}},
			"", "nobody follows it"},
		{"a policy", "other", "DestinationPolicy", spec{"destination": to, "loadBalancing": spec{"name": "RANDOM"}}, "other", "only callers in namespace other follow it"},
		{"the owner's policy", "shop", "DestinationPolicy", spec{"destination": to, "loadBalancing": spec{"name": "RANDOM"}}, "shop other third", ""},
		{"a policy for callers of the owner", "other", "DestinationPolicy", spec{"destination": to, "source": spec{"service": "front.shop.svc.cluster.local"}, "loadBalancing": spec{"name": "RANDOM"}},
			"", "nobody follows it"},
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
	t.Run("one over its budget", func(t *testing.T) {
		large := objectIn(t, "other", "RouteRule", "rule", spec{"destination": to, "route": tooMuch()})
		for caller, node := range map[string]string{"shop": "sidecar~10.1.0.2~front.shop~shop.svc.cluster.local", "other": "sidecar~10.1.0.3~caller.other~other.svc.cluster.local"} {
			config, _ := compiled(t, node, append(slices.Clone(services), large))
			if got := routeTo(t, config, shopHost).Response != nil; got != (caller == "other") {
				t.Errorf("a caller of %s is refused: %v", caller, got)
			}
		}
	})
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
