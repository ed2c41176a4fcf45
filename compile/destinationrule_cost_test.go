package compile_test

import (
	"strings"
	"testing"

	"github.com/pilot-api/pilot-api/compile"
	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// TestSubsetsWithinBudget: subsets that would list all endpoints too often are
// closed, and say so; the service itself is not.
func TestSubsetsWithinBudget(t *testing.T) {
	var endpoints []spec
	for _, address := range []string{"10.8.0.1", "10.8.0.2", "10.8.0.3", "10.8.0.4"} {
		endpoints = append(endpoints, spec{"address": address})
	}
	for _, tc := range []struct {
		subsets []string
		over    bool
	}{{[]string{"a", "b", "c"}, false}, {[]string{"a", "b", "c", "d"}, true}} {
		var subsets []spec
		var routes []spec
		for _, name := range tc.subsets {
			subsets = append(subsets, spec{"name": name})
			routes = append(routes, spec{
				"match": []spec{{"uri": spec{"exact": "/" + name}}},
				"route": []spec{{"destination": spec{"host": "out.example", "subset": name}}},
			})
		}
		routes = append(routes, spec{"route": []spec{{"destination": spec{"host": "out.example"}}}})
		settings := mesh.DefaultSettings()
		settings.Budget = mesh.Budget{Object: 15}
		snapshot := mesh.NewSnapshot(1, settings, []*schema.Object{
			object(t, "ServiceEntry", "out", spec{"hosts": []string{"out.example"}, "resolution": "STATIC",
				"ports": []spec{{"number": 80, "name": "http", "protocol": "HTTP"}}, "endpoints": endpoints}),
			object(t, "DestinationRule", "out", spec{"host": "out.example", "subsets": subsets,
				"trafficPolicy": spec{"loadBalancer": spec{"simple": "ROUND_ROBIN"}}}),
			object(t, "VirtualService", "out", spec{"hosts": []string{"out.example"}, "http": routes}),
		})
		config, problems := compile.Proxy(snapshot, snapshot.TraitsOf(proxy(t, "sidecar~10.99.0.1~caller~default.svc.cluster.local")))
		whole, closed := 0, 0
		for _, c := range config.Clusters {
			switch {
			case !strings.HasPrefix(c.Name, "out.out.example"):
			case len(c.Hosts) == len(endpoints):
				whole++
			default:
				closed++
			}
		}
		if want := len(tc.subsets); tc.over && (whole != 1 || closed != want) || !tc.over && closed > 0 {
			t.Errorf("with %d subsets %d clusters are whole and %d closed", want, whole, closed)
		}
		found := ""
		for _, p := range problems {
			if p.Code == diag.OverBudget && p.Object.Kind == "DestinationRule" {
				found = p.Message
			}
		}
		if want := "4 subsets × 4 endpoints at ports = 16 parts"; tc.over != strings.Contains(found, want) {
			t.Errorf("with %d subsets the rule has the problem %q", len(tc.subsets), found)
		}
	}
}
