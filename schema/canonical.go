package schema

import (
	"strings"

	networking "istio.io/api/networking/v1alpha3"
)

// canonical gives a typed spec the one spelling of what can be written in
// several. Host names are in lower case: upper case is read, as in Istio, and
// means nothing, but Envoy, DNS and whoever looks a host up must agree.
func canonical(spec any) {
	switch s := spec.(type) {
	case *networking.ServiceEntry:
		lowerAll(s.Hosts)
		for _, endpoint := range s.Endpoints {
			lowerAddress(endpoint)
		}
	case *networking.WorkloadEntry:
		lowerAddress(s)
	case *networking.DestinationRule:
		s.Host = strings.ToLower(s.Host)
	case *networking.Gateway:
		for _, server := range s.Servers {
			lowerAll(server.GetHosts())
		}
	case *networking.VirtualService:
		lowerVirtualService(s)
		absentWithAnyValue(s)
	}
}

// lowerAddress leaves the path of a socket as it is.
func lowerAddress(w *networking.WorkloadEntry) {
	if w != nil && !strings.HasPrefix(w.Address, unixPrefix) {
		w.Address = strings.ToLower(w.Address)
	}
}

func lowerVirtualService(s *networking.VirtualService) {
	lowerAll(s.Hosts)
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
			lowerAll(m.GetSniHosts())
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
		d.Host = strings.ToLower(d.Host)
	}
}

func lowerAll(hosts []string) {
	for i, host := range hosts {
		hosts[i] = strings.ToLower(host)
	}
}

// anyValue is what Istio reads a regex for a header that must be absent as
// meaning: no expression, but any value.
const anyValue = "*"

// absentWithAnyValue makes the condition of such a regex what it means, that
// the header is there.
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
