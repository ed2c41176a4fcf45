package compile_test

import (
	"slices"
	"testing"

	"github.com/pilot-api/pilot-api/compile"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// TestStrangersMakeNothingExpensive: services that a rule's namespace does not see, and
// rules that its requests do not follow, count for no rule.
func TestStrangersMakeNothingExpensive(t *testing.T) {
	wide := wideService(t, ports(5, "HTTP"))
	service := func(namespace string, hosts, ports any, exportTo ...string) *schema.Object {
		return objectIn(t, namespace, "ServiceEntry", "service", spec{
			"hosts": hosts, "location": "MESH_INTERNAL", "resolution": "STATIC", "exportTo": exportTo,
			"ports": ports, "endpoints": []spec{{"address": "10.9.0.7"}},
		})
	}
	shared := []string{"shared.example.com"}
	own := service("default", shared, ports(2, "HTTP"), ".")
	beneath := func(exportTo ...string) *schema.Object {
		return service("evil", texts(3, "h%d.evil.svc.cluster.local"), ports(2, "HTTP"), exportTo...)
	}
	rule := func(host string) *schema.Object {
		return object(t, "VirtualService", "rule", spec{"hosts": []string{host}, "http": repeated(10, func(int) spec {
			return spec{"match": prefixes(1, "/a"), "route": []spec{{"destination": spec{"host": "wide"}}}}
		})})
	}
	old := routeRule(t, "old", 1, 4, spec{"destination": spec{"service": "shared.example.com"}})
	ingress := object(t, "IngressRule", "ingress", spec{"destination": spec{"name": "wide"}, "destinationPort": 1000})
	foreign := func(name string) *schema.Object {
		return objectIn(t, "evil", "RouteRule", name, spec{"destination": spec{"name": "wide", "namespace": "default"},
			"match": spec{"request": spec{"headers": spec{"uri": spec{"prefix": "/" + name}}}},
			"route": repeated(50, func(i int) spec { return spec{"labels": spec{"v": name}, "weight": 2} })})
	}
	for _, test := range []struct {
		name    string
		objects []*schema.Object
		rule    string // that is withheld, or ""
	}{
		{"a VirtualService", []*schema.Object{rule(shared[0]), own}, ""},
		{"a private service of its host", []*schema.Object{rule(shared[0]), own, service("evil", shared, ports(5, "HTTP"), ".")}, ""},
		{"a service of its host for others", []*schema.Object{rule(shared[0]), own, service("evil", shared, ports(5, "HTTP"), "other")}, ""},
		{"a service that it sees", []*schema.Object{rule(shared[0]), service("evil", shared, ports(7, "HTTP"))}, "VirtualService default/rule"},
		{"a VirtualService for a wildcard", []*schema.Object{rule("*.svc.cluster.local")}, ""},
		{"private services under a wildcard", []*schema.Object{rule("*.svc.cluster.local"), beneath(".")}, ""},
		{"services that it sees under a wildcard", []*schema.Object{rule("*.svc.cluster.local"), beneath("default")}, "VirtualService default/rule"},
		{"services for all under a wildcard", []*schema.Object{rule("*.svc.cluster.local"), beneath()}, "VirtualService default/rule"},
		{"a RouteRule", []*schema.Object{old, own}, ""},
		{"a private service of a RouteRule's host", []*schema.Object{old, own, service("evil", shared, ports(5, "HTTP"), ".")}, ""},
		{"foreign rules of an IngressRule's service", []*schema.Object{ingress, foreign("a"), foreign("b"), foreign("c")}, ""},
	} {
		settings := mesh.DefaultSettings()
		settings.Budget = mesh.Budget{Object: 100, Mesh: 100_000}
		s := mesh.NewSnapshot(1, settings, append(test.objects, wide))
		_, problems := compile.Proxy(s, s.TraitsOf(proxy(t, sidecarNode)))
		withheld := slices.DeleteFunc(overBudget(problems), func(of string) bool {
			return of != "VirtualService default/rule" && of != "RouteRule default/old" && of != "IngressRule default/ingress"
		})
		if test.rule == "" && len(withheld) > 0 || test.rule != "" && !slices.Contains(withheld, test.rule) {
			t.Errorf("%s: withheld are %q, want %q", test.name, withheld, test.rule)
		}
	}
}
