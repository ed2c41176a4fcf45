package schema

import (
	"fmt"
	"slices"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilot-api/pilot-api/diag"
)

func init() {
	register(&Kind{
		Group: networkingGroup, Version: "v1", Served: networkingVersions,
		Kind: "VirtualService", Plural: "virtualservices", Singular: "virtualservice",
		Dashed: "virtual-service", ShortNames: []string{"vs"},
		Doc: "A VirtualService says where requests and connections to its hosts go. " +
			"It has a list of routes for each of HTTP, TLS and TCP. The first route that matches wins.",
		Notes: headerNotes(),
		Columns: []Column{
			listColumn("Gateways", "The gateways that the routes are for; mesh is all sidecars.", ",", gatewaysOf),
			listColumn("Hosts", "The hosts that callers name.", ",", func(s *networking.VirtualService) []string { return s.Hosts }),
			wideColumn("Routes", "How many routes there are for HTTP, TLS and TCP.", routeCounts),
			wideColumn("Destinations", "The services that they lead to, with subsets.", destinationNames),
		},
		selectable: []SelectableField{
			selectable("spec.hosts", func(s *networking.VirtualService) []string { return s.Hosts }),
			selectable("spec.gateways", gatewaysOf),
			selectable("destination.host", destinationHosts),
		},
		spec:   inProto[networking.VirtualService](),
		check:  checkAs(checkVirtualService),
		limits: checkAs(virtualServiceLimits),
	})
}

// meshGateway is the name among the gateways that stands for all sidecars.
const meshGateway = "mesh"

func gatewaysOf(s *networking.VirtualService) []string {
	if len(s.Gateways) == 0 {
		return []string{meshGateway}
	}
	return s.Gateways
}

// checkVirtualService applies the rules of Istio's reference page and of its
// admission check.
func checkVirtualService(s *networking.VirtualService) diag.List {
	var p problems
	p.virtualHosts(s)
	if len(s.Hosts) == 0 {
		p.delegated(s)
	}
	if len(s.Http)+len(s.Tls)+len(s.Tcp) == 0 {
		p.required("spec.http", "must have a route, or else tls or tcp")
	}
	forSidecars := slices.Contains(gatewaysOf(s), meshGateway)
	for i, route := range s.Http {
		p.httpRoute(indexField("spec.http", i), route, forSidecars)
	}
	hosts := newHostSet(s.Hosts)
	for i, route := range s.Tls {
		p.tlsRoute(indexField("spec.tls", i), route, s.Hosts, hosts)
	}
	for i, route := range s.Tcp {
		p.connectionRoute(fmt.Sprintf("spec.tcp[%d].route", i), route.Route)
	}
	p.unreachable(s)
	p.exportToSomeone(s.ExportTo)
	p.within(virtualProduct(s))
	return p.list
}

// delegated checks an object without hosts, to which others delegate HTTP requests.
func (p *problems) delegated(s *networking.VirtualService) {
	const why = "cannot be given without hosts: such an object only takes HTTP requests that others delegate to it"
	if len(s.Gateways) > 0 {
		p.forbidden("spec.gateways", why)
	}
	if len(s.Tls) > 0 {
		p.forbidden("spec.tls", why)
	}
	if len(s.Tcp) > 0 {
		p.forbidden("spec.tcp", why)
	}
	for i, route := range s.Http {
		if route.Delegate != nil {
			p.forbidden(fmt.Sprintf("spec.http[%d].delegate", i), "cannot be given without hosts: a delegate cannot delegate again")
		}
	}
}

func (p *problems) virtualHosts(s *networking.VirtualService) {
	forSidecars := slices.Contains(gatewaysOf(s), meshGateway)
	for i, first := range firstOverlaps(s.Hosts) {
		at := indexField("spec.hosts", i)
		if s.Hosts[i] == "*" && forSidecars {
			p.invalidValue(at, "*", "must not be the bare wildcard for sidecars; name gateways other than mesh, or use *.example.com")
		}
		if first < i {
			p.duplicate(at, fmt.Sprintf("is already covered by, or covers, %s in spec.hosts[%d]", s.Hosts[first], first))
		}
	}
}

func (p *problems) destination(field string, d *networking.Destination) {
	if d.GetHost() == "*" {
		p.invalidValue(field+".host", d.Host, "must name a service; the bare wildcard is all of them")
	}
}

// weights accepts weights with any sum above 0.
func (p *problems) weights(field string, n int, weight func(int) int32) {
	var sum int64
	for i := range n {
		sum += int64(weight(i))
	}
	if n > 1 && sum == 0 {
		p.invalid(field, "at least one of several weights must be above 0")
	}
}
