package schema

import (
	"fmt"
	"slices"
	"strings"

	networking "istio.io/api/networking/v1alpha3"
)

func (p *problems) tlsRoute(field string, r *networking.TLSRoute, s *networking.VirtualService) {
	for i, m := range r.Match {
		for j, name := range m.SniHosts {
			p.sniHost(indexField(indexField(field+".match", i)+".sniHosts", j), name, s)
		}
	}
	p.connectionRoute(field+".route", r.Route)
}

func (p *problems) connectionRoute(field string, route []*networking.RouteDestination) {
	if len(route) == 0 {
		p.required(field, "must have a destination")
	}
	for i, d := range route {
		p.destination(indexField(field, i)+".destination", d.Destination)
	}
	p.weights(field, len(route), func(i int) int32 { return route[i].Weight })
}

func (p *problems) sniHost(field, name string, s *networking.VirtualService) {
	if isIP(name) {
		p.warn(field, "is an address, and clients do not ask for addresses")
		return
	}
	if len(s.Hosts) > 0 && !slices.ContainsFunc(s.Hosts, func(host string) bool { return hostWithin(name, host) }) {
		p.invalidValue(field, name, fmt.Sprintf("must be within one of spec.hosts: %s", strings.Join(s.Hosts, ", ")))
	}
}
