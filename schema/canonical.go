package schema

import (
	"strings"

	networking "istio.io/api/networking/v1alpha3"
)

// canonical rewrites values of a typed spec that can be written in several ways to
// one form. Host names become lower case without a final dot. Upper case and the
// dot are accepted, as in Istio, and mean nothing, but Envoy, DNS and all code that
// looks up a host must agree.
func canonical(spec any) {
	switch s := spec.(type) {
	case *networking.ServiceEntry:
		nameAll(s.Hosts)
		for _, endpoint := range s.Endpoints {
			lowerAddress(endpoint)
		}
	case *networking.WorkloadEntry:
		lowerAddress(s)
	case *networking.DestinationRule:
		s.Host = hostName(s.Host)
	case *networking.Gateway:
		for _, server := range s.Servers {
			nameAll(server.GetHosts())
		}
	case *networking.Sidecar:
		for _, egress := range s.GetEgress() {
			nameAll(egress.GetHosts())
		}
	case *networking.VirtualService:
		lowerVirtualService(s)
		absentWithAnyValue(s)
	}
}

// lowerAddress does not change the path of a socket.
func lowerAddress(w *networking.WorkloadEntry) {
	if w != nil && !strings.HasPrefix(w.Address, unixPrefix) {
		w.Address = strings.ToLower(w.Address)
	}
}

func lowerVirtualService(s *networking.VirtualService) {
	nameAll(s.Hosts)
	for _, r := range s.Http {
		for _, d := range r.GetRoute() {
			lowerDestination(d.GetDestination())
		}
		lowerDestination(r.GetMirror())
		for _, m := range r.GetMirrors() {
			lowerDestination(m.GetDestination())
		}
	}
	for _, r := range s.Tls {
		for _, m := range r.GetMatch() {
			nameAll(m.GetSniHosts())
		}
		lowerRoutes(r.GetRoute())
	}
	for _, r := range s.Tcp {
		lowerRoutes(r.GetRoute())
	}
}

func lowerRoutes(routes []*networking.RouteDestination) {
	for _, r := range routes {
		lowerDestination(r.GetDestination())
	}
}

func lowerDestination(d *networking.Destination) {
	if d != nil {
		d.Host = hostName(d.Host)
	}
}

func nameAll(hosts []string) {
	for i, host := range hosts {
		hosts[i] = hostName(host)
	}
}

// hostName returns the canonical form of a host or wildcard, optionally after a
// namespace and a slash.
func hostName(host string) string { return strings.ToLower(strings.TrimSuffix(host, ".")) }

// anyValue, as a regex for a header that must be absent, means any value in Istio.
// It is not an expression.
const anyValue = "*"

// absentWithAnyValue replaces such a regex by the condition that the header is
// present.
func absentWithAnyValue(s *networking.VirtualService) {
	for _, r := range s.Http {
		for _, m := range r.GetMatch() {
			for name, condition := range m.GetWithoutHeaders() {
				if condition.GetRegex() == anyValue {
					m.WithoutHeaders[name] = &networking.StringMatch{}
				}
			}
		}
	}
}
