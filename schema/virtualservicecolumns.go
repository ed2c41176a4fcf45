package schema

import (
	"fmt"
	"strings"

	networking "istio.io/api/networking/v1alpha3"
)

// routeCounts returns "http=2,tcp=1".
func routeCounts(s *networking.VirtualService) string {
	var parts []string
	for _, list := range []struct {
		name string
		n    int
	}{{"http", len(s.Http)}, {"tls", len(s.Tls)}, {"tcp", len(s.Tcp)}} {
		if list.n > 0 {
			parts = append(parts, fmt.Sprintf("%s=%d", list.name, list.n))
		}
	}
	return strings.Join(parts, ",")
}

// destinationNames returns the hosts that routes lead to, each once, with subsets:
// reviews/v1.
func destinationNames(s *networking.VirtualService) string {
	var names []string
	seen := map[string]bool{}
	for _, d := range destinations(s) {
		name := d.GetHost()
		if subset := d.GetSubset(); subset != "" {
			name += "/" + subset
		}
		if !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	}
	return strings.Join(names, ",")
}

func destinationHosts(s *networking.VirtualService) []string {
	var hosts []string
	for _, d := range destinations(s) {
		hosts = append(hosts, d.GetHost())
	}
	return hosts
}

func destinations(s *networking.VirtualService) []*networking.Destination {
	var out []*networking.Destination
	for _, r := range s.Http {
		for _, d := range r.GetRoute() {
			out = append(out, d.GetDestination())
		}
	}
	var routes []*networking.RouteDestination
	for _, r := range s.Tls {
		routes = append(routes, r.GetRoute()...)
	}
	for _, r := range s.Tcp {
		routes = append(routes, r.GetRoute()...)
	}
	for _, d := range routes {
		out = append(out, d.GetDestination())
	}
	return out
}
