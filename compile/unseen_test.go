package compile_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/schema"
)

// TestOldKindsReachOnlyWhatTheySee: a RouteRule or an IngressRule sends nothing to a
// service that is not exported to its namespace, whatever its callers see.
func TestOldKindsReachOnlyWhatTheySee(t *testing.T) {
	const host = "secret.vault.svc.cluster.local"
	for _, test := range []struct {
		name     string
		exportTo []string
		seen     bool
	}{
		{"exported to all", nil, true},
		{"exported to the rule", []string{"default"}, true},
		{"its own namespace", []string{"."}, false},
		{"another namespace", []string{".", "other"}, false},
	} {
		key := host + "|http" // of its instances
		if len(test.exportTo) > 0 {
			key = host + "@secret.vault|http"
		}
		secret := spec{"name": "secret", "namespace": "vault"}
		objs := []*schema.Object{
			hostIn(t, "default", "front"), hostIn(t, "vault", "secret", test.exportTo...),
			object(t, "RouteRule", "leads", spec{"destination": spec{"name": "front"}, "route": []spec{{"destination": secret}}}),
			object(t, "IngressRule", "opens", spec{"destination": secret, "destinationPort": 80}),
		}
		for _, node := range []string{
			"sidecar~10.9.0.1~a.default~default.svc.cluster.local", "sidecar~10.9.0.2~a.vault~vault.svc.cluster.local",
			"ingress~10.9.0.3~a.default~default.svc.cluster.local", "ingress~10.9.0.4~a.vault~vault.svc.cluster.local",
		} {
			config, problems := compiled(t, node, objs)
			reached := false
			for _, table := range config.RouteTables {
				for _, h := range table.VirtualHosts {
					for _, r := range h.Routes {
						if r.Operation != "leads" && !strings.HasPrefix(node, "ingress") {
							continue
						}
						for _, c := range r.Clusters {
							reached = reached || slices.ContainsFunc(config.Clusters, func(to *ir.Cluster) bool { return to.Name == c.Name && to.EndpointKey == key })
						}
					}
				}
			}
			if reached != test.seen {
				t.Errorf("%s, %s: reached is %v", test.name, node, reached)
			}
			for _, name := range []string{"leads", "opens"} {
				told := slices.ContainsFunc(problems, func(p diag.Problem) bool { return p.Object.Name == name && p.Code == diag.UnknownHost })
				if told == test.seen {
					t.Errorf("%s: %s has the problem: %v\n%v", test.name, name, told, problems)
				}
			}
		}
	}
}

// TestGatewaysLendNoServices: at a gateway a VirtualService reaches only what both its own
// namespace and the gateway's see.
func TestGatewaysLendNoServices(t *testing.T) {
	const host, node = "secret.vault.svc.cluster.local", "router~10.9.0.3~edge.edge~edge.svc.cluster.local"
	for _, test := range []struct {
		author   string // of the VirtualService
		exportTo []string
		reached  bool
	}{
		{"default", []string{"edge", "default"}, true},
		{"default", []string{"*"}, true},
		{"default", []string{"edge"}, false},
		{"default", []string{"default"}, false},
		{"vault", []string{"edge"}, true}, // Its own, which it exports only to the gateway.
	} {
		config, problems := compiled(t, node, []*schema.Object{
			hostIn(t, "vault", "secret", test.exportTo...),
			objectIn(t, "edge", "Gateway", "edge", spec{"servers": []spec{{"port": spec{"number": 80, "name": "http", "protocol": "HTTP"}, "hosts": []string{"*"}}}}),
			objectIn(t, test.author, "VirtualService", "opens", spec{"hosts": []string{"a.example.com"}, "gateways": []string{"edge/edge"},
				"http": []spec{{"route": []spec{{"destination": spec{"host": host}}}}}}),
		})
		to := config.RouteTables[0].VirtualHosts[0].Routes[0].Clusters[0].Name
		at := slices.IndexFunc(config.Clusters, func(c *ir.Cluster) bool { return c.Name == to })
		key := config.Clusters[at].EndpointKey
		if reached := key == host+"|http" && test.exportTo[0] == "*" || key == host+"@secret.vault|http"; reached != test.reached {
			t.Errorf("exported to %v: the route leads to %s", test.exportTo, key)
		}
		told := slices.ContainsFunc(problems, func(p diag.Problem) bool { return p.Object.Name == "opens" && p.Code == diag.UnknownHost })
		if hidden := test.exportTo[0] == "edge" && !test.reached; told != hidden {
			t.Errorf("exported to %v: the problem is %v\n%v", test.exportTo, told, problems)
		}
	}
}
