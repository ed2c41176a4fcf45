package schema

import (
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilot-api/pilot-api/diag"
)

func (p *problems) tlsRoute(field string, r *networking.TLSRoute, hosts []string, set hostSet) {
	for i, m := range r.Match {
		for j, name := range m.SniHosts {
			p.sniHost(indexField(indexField(field+".match", i)+".sniHosts", j), name, hosts, set)
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

func (p *problems) sniHost(field, name string, hosts []string, set hostSet) {
	if isIP(name) {
		p.warnOf(diag.NeverMatches, field, "is an address, and clients do not ask for addresses")
		return
	}
	if len(hosts) > 0 && !set.covers(name) {
		p.invalidValue(field, name, "must be within one of spec.hosts: "+some(hosts))
	}
}
