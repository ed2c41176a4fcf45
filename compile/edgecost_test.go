package compile_test

import (
	"fmt"
	"testing"

	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// TestCostOfServers: twice as many servers with authorities of their own at a port cost
// about twice the allocations, not four times.
func TestCostOfServers(t *testing.T) {
	cost := func(n int) float64 {
		var servers []spec
		for i := range n {
			host := fmt.Sprintf("h%d.example", i)
			servers = append(servers, spec{
				"port": spec{"number": 443, "name": fmt.Sprintf("https-%d", i), "protocol": "HTTPS"}, "hosts": []string{host},
				"tls": spec{"mode": "MUTUAL", "serverCertificate": "/" + host + ".crt", "privateKey": "/" + host + ".key", "caCertificates": "/" + host + ".ca.crt"},
			})
		}
		objs := []*schema.Object{
			object(t, "Gateway", "edge", spec{"servers": servers}),
			object(t, "VirtualService", "all", spec{
				"hosts": []string{"*"}, "gateways": []string{"edge"}, "http": []spec{{"directResponse": spec{"status": 200}}},
			}),
		}
		return testing.AllocsPerRun(1, func() {
			config, _ := compiledAs(t, mesh.V1Compatibility{}, "router~10.7.7.8~edge~default.svc.cluster.local", objs)
			if len(config.RouteTables) != n {
				t.Fatalf("%d servers have %d route tables", n, len(config.RouteTables))
			}
		})
	}
	few, many := cost(32), cost(64)
	if t.Logf("allocations: %.0f for 32 servers, %.0f for 64", few, many); many > 2*few {
		t.Errorf("64 servers cost %.0f allocations, 32 cost %.0f: want at most 2 times as many", many, few)
	}
}
