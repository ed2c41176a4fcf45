package compile_test

import (
	"strings"
	"testing"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/schema"
)

// TestHostsThatNoClientReaches: a VirtualService hears of each server of its Gateways to
// which no client comes that asks for its host.
func TestHostsThatNoClientReaches(t *testing.T) {
	server := func(port int, protocol, certificate string, hosts ...string) spec {
		out := spec{"port": spec{"number": port, "name": strings.ToLower(protocol), "protocol": protocol}, "hosts": hosts}
		switch certificate {
		case "":
		case "PASSTHROUGH":
			out["tls"] = spec{"mode": certificate}
		default:
			out["tls"] = spec{"mode": "SIMPLE", "serverCertificate": "/etc/" + certificate + ".crt", "privateKey": "/etc/" + certificate + ".key"}
		}
		return out
	}
	gateway := func(namespace, name string, selector spec, servers ...spec) *schema.Object {
		return objectIn(t, namespace, "Gateway", name, spec{"selector": selector, "servers": servers})
	}
	edge := spec{"istio": "edge"}
	rule := func(host string, gateways []string, routes ...spec) *schema.Object {
		if len(routes) == 0 {
			routes = []spec{{"directResponse": spec{"status": 403}}}
		}
		return object(t, "VirtualService", "deny", spec{"hosts": []string{host}, "gateways": gateways, "http": routes})
	}
	wide, only := gateway("default", "wide", edge, server(443, "HTTPS", "a", "*")), []string{"wide"}
	const host = "a.example.com"
	for _, of := range []struct {
		name string
		rule *schema.Object
		with []*schema.Object
		want string // "" for no problem
	}{
		{"alone", rule(host, only), nil, ""},
		{"a more precise server", rule(host, only), []*schema.Object{gateway("evil", "narrow", edge, server(443, "HTTPS", "b", host))}, "Gateway evil/narrow, which has the host a.example.com"},
		{"one for a wildcard", rule(host, only), []*schema.Object{gateway("evil", "narrow", edge, server(443, "HTTPS", "b", "*.example.com"))}, "has the host *.example.com"},
		{"a wildcard of the rule", rule("*.example.com", only), []*schema.Object{gateway("evil", "narrow", edge, server(443, "HTTPS", "b", "*.example.com"))}, "has the host *.example.com"},
		{"a part of the wildcard", rule("*.example.com", only), []*schema.Object{gateway("evil", "narrow", edge, server(443, "HTTPS", "b", host))}, ""},
		{"the same TLS", rule(host, only), []*schema.Object{gateway("evil", "narrow", edge, server(443, "HTTPS", "a", host))}, ""},
		{"another port", rule(host, only), []*schema.Object{gateway("evil", "narrow", edge, server(444, "HTTPS", "b", host))}, ""},
		{"plain HTTP", rule(host, []string{"plain"}), []*schema.Object{gateway("default", "plain", edge, server(80, "HTTP", "", "*")), gateway("evil", "narrow", edge, server(80, "HTTP", "", host))}, ""},
		{"TLS that ends in TCP", rule(host, only), []*schema.Object{gateway("evil", "narrow", edge, server(443, "TLS", "b", host))}, "Gateway evil/narrow, which has the host a.example.com"},
		{"TLS that is passed on", rule(host, only), []*schema.Object{
			gateway("evil", "narrow", edge, server(443, "TLS", "PASSTHROUGH", "*")),
			objectIn(t, "evil", "VirtualService", "takes", spec{"hosts": []string{host}, "gateways": []string{"narrow"}, "tls": []spec{
				{"match": []spec{{"sniHosts": []string{host}}}, "route": []spec{{"destination": spec{"host": "b.example.com"}}}}}}),
		}, "passed on as VirtualService evil/takes says"},
		{"at some routers", rule(host, only), []*schema.Object{gateway("evil", "narrow", spec{"istio": "edge", "zone": "b"}, server(443, "HTTPS", "b", host))}, "Gateway evil/narrow"},
		{"at one of two ports", rule(host, []string{"wide", "plain"}), []*schema.Object{
			gateway("default", "plain", edge, server(80, "HTTP", "", "*")), gateway("evil", "narrow", edge, server(443, "HTTPS", "b", host))}, "at port 443 come to Gateway evil/narrow"},
		{"bound to both", rule(host, []string{"wide", "evil/narrow"}), []*schema.Object{gateway("evil", "narrow", edge, server(443, "HTTPS", "b", host))}, ""},
		{"a route of one of both", rule(host, []string{"wide", "evil/narrow"}, spec{"match": []spec{{"gateways": []string{"wide"}}}, "directResponse": spec{"status": 403}}),
			[]*schema.Object{gateway("evil", "narrow", edge, server(443, "HTTPS", "b", host))}, "do not arrive through Gateway default/wide"},
		{"a server that lost its port", rule(host, []string{"wide", "z"}), []*schema.Object{gateway("default", "z", edge, server(443, "HTTP", "", "*"))}, "spec.servers[0] of Gateway default/z, at port 443, is left out"},
		{"a name that another server has", rule(host, []string{"z"}), []*schema.Object{gateway("default", "z", edge, server(443, "HTTPS", "b", "*"))}, "come to Gateway default/wide, which comes first"},
	} {
		t.Run(of.name, func(t *testing.T) {
			_, problems := compiled(t, "router~10.9.0.1~edge.default~default.svc.cluster.local labels=istio=edge", append([]*schema.Object{wide, of.rule}, of.with...))
			var found []string
			for _, p := range problems {
				if p.Code == diag.HostNotServed && p.Object.Name == "deny" {
					found = append(found, p.String())
				}
			}
			switch {
			case of.want == "" && len(found) > 0:
				t.Errorf("the rule is served, and has the problems %q", found)
			case of.want != "" && (len(found) != 1 || !strings.Contains(found[0], of.want)):
				t.Errorf("the problems are %q, want one that says %q", found, of.want)
			}
		})
	}
}
