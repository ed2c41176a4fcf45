package compile

import (
	"maps"
	"slices"

	"github.com/pilot-api/pilot-api/mesh"
)

// openPort is a port at which proxies of a scope call services by HTTP.
type openPort struct {
	number int
	first  *mesh.Service // of the services that they see there, in the order of servicesFor
}

// openPortsIn returns the ports at which proxies of a scope call services by HTTP, by
// number. It does not read the other services of a port, so they do not affect it.
func (rd *reader) openPortsIn(s scope) []openPort { return rd.openPorts.Get(rd.r, ruleScope(s)) }

func (rd *reader) findOpenPorts(s scope) []openPort {
	first := map[int]*mesh.Service{}
	opens := func(services []*mesh.Service) {
		for _, svc := range services {
			for _, port := range rd.portsFor(s, svc) {
				if rd.routesHTTP(svc, port) && first[port.Number] == nil {
					first[port.Number] = svc
				}
			}
		}
	}
	if s.sidecar.limits() {
		opens(rd.servicesFor(s))
	} else {
		namespace := rd.forDomain(s.domain).namespace
		for _, number := range rd.httpNumbers.Get(rd.r, none{}) {
			services := rd.registry.byHTTP.under(rd, number)
			if at := slices.IndexFunc(services, func(svc *mesh.Service) bool { return svc.VisibleIn(namespace) }); at >= 0 {
				first[number] = services[at]
			}
		}
		opens(rd.egressFor(s, namespace))
	}
	var out []openPort
	for _, number := range slices.Sorted(maps.Keys(first)) {
		out = append(out, openPort{number, first[number]})
	}
	return out
}

// findHTTPNumbers returns the ports with HTTP of all services of the registry, sorted.
func (rd *reader) findHTTPNumbers(none) []int {
	seen := map[int]bool{}
	for _, svc := range rd.services() {
		for _, number := range rd.httpNumbersOf(svc) {
			seen[number] = true
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// httpNumbersOf returns the ports of a service with HTTP.
func (m *model) httpNumbersOf(svc *mesh.Service) (out []int) {
	for _, port := range svc.Ports {
		if m.routesHTTP(svc, port) {
			out = append(out, port.Number)
		}
	}
	return out
}

// egressFor returns the hosts of EgressRules that proxies of a scope follow. Routers follow
// none.
func (rd *reader) egressFor(s scope, namespace string) []*mesh.Service {
	if s.role == mesh.Router {
		return nil
	}
	return rd.egressIn(namespace)
}

// tcpServicesFor returns those of servicesFor that have a port which is neither HTTP nor
// UDP. With a Sidecar that limits hosts, others may be among them.
func (rd *reader) tcpServicesFor(s scope) []*mesh.Service {
	if s.sidecar.limits() {
		return rd.servicesFor(s)
	}
	namespace := rd.forDomain(s.domain).namespace
	var out []*mesh.Service
	for _, svc := range rd.registry.byTCP.under(rd, none{}) {
		if svc.VisibleIn(namespace) {
			out = append(out, svc)
		}
	}
	return append(out, rd.egressFor(s, namespace)...)
}
