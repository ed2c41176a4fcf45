package compile_test

import (
	"testing"

	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// TestSourceAtAGateway: there a route is limited to gateways whose workload has
// the labels and the namespace.
func TestSourceAtAGateway(t *testing.T) {
	const edge = "router~10.7.7.8~edge~istio-system.svc.cluster.local"
	match := func(source spec) []spec { return []spec{source} }
	for _, test := range []struct {
		source spec
		node   string
		fits   bool
	}{
		{spec{"sourceLabels": spec{"app": "edge"}}, edge + " labels=app=edge,v=2", true},
		{spec{"sourceLabels": spec{"app": "edge", "v": "2"}}, edge + " labels=app=edge,v=2", true},
		{spec{"sourceLabels": spec{"app": "edge"}}, edge + " labels=app=other", false},
		{spec{"sourceLabels": spec{"app": "edge"}}, edge, false},
		{spec{"sourceNamespace": "istio-system"}, edge, true},
		{spec{"sourceNamespace": "elsewhere"}, edge, false},
		{spec{"sourceNamespace": "elsewhere"}, edge + " namespace=elsewhere", true},
		{spec{"sourceNamespace": "istio-system", "sourceLabels": spec{"app": "edge"}}, edge + " labels=app=edge", true},
		{spec{"sourceNamespace": "elsewhere", "sourceLabels": spec{"app": "edge"}}, edge + " labels=app=edge", false},
		{spec{}, edge, true},
	} {
		tls := spec{"sniHosts": []string{"shop.example"}}
		for name, value := range test.source {
			tls[name] = value
		}
		to := func(host string) []spec {
			return []spec{{"destination": spec{"host": host, "port": spec{"number": 80}}}}
		}
		const first, then = "first.default.svc.cluster.local", "then.default.svc.cluster.local"
		objs := []*schema.Object{
			hostIn(t, "default", "first"), hostIn(t, "default", "then"),
			object(t, "Gateway", "g", spec{"servers": []spec{
				{"port": spec{"number": 80, "name": "http", "protocol": "HTTP"}, "hosts": []string{"*"}},
				{"port": spec{"number": 81, "name": "tcp", "protocol": "TCP"}, "hosts": []string{"*"}},
				{"port": spec{"number": 82, "name": "tls", "protocol": "TLS"}, "hosts": []string{"*"}, "tls": spec{"mode": "PASSTHROUGH"}},
			}}),
			object(t, "VirtualService", "shop", spec{
				"hosts": []string{"shop.example"}, "gateways": []string{"g"},
				"http": []spec{{"match": match(test.source), "directResponse": spec{"status": 403}}, {"directResponse": spec{"status": 200}}},
				"tcp":  []spec{{"match": match(test.source), "route": to(first)}, {"route": to(then)}},
				"tls":  []spec{{"match": match(tls), "route": to(first)}, {"match": match(spec{"sniHosts": []string{"shop.example"}}), "route": to(then)}},
			}),
		}
		config, _ := compiledAs(t, mesh.V1Compatibility{}, test.node, objs)
		status, cluster := 200, "out."+then+"|http"
		if test.fits {
			status, cluster = 403, "out."+first+"|http"
		}
		if got := config.RouteTables[0].VirtualHosts[0].Routes[0].Response; got == nil || got.Status != status {
			t.Errorf("%s with %v: requests get %+v, want %d", test.node, test.source, got, status)
		}
		for _, port := range []int{81, 82} {
			if got := firstConnections(config, port); got != cluster {
				t.Errorf("%s with %v: connections to port %d go to %q, want %s", test.node, test.source, port, got, cluster)
			}
		}
	}
}

// firstConnections is where a gateway sends connections first.
func firstConnections(config *ir.Config, port int) string {
	for _, l := range config.Listeners {
		if l.Port != port {
			continue
		}
		tcp := l.TCP
		if tcp == nil {
			tcp = l.Chains[0].TCP
		}
		return tcp.Routes[0].Clusters[0].Name
	}
	return ""
}
