package compile

import (
	"slices"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// httpRoutes returns the routes of a VirtualService to one port of a service, for
// sidecars and ingresses.
func (d *domainPlan) httpRoutes(vs *virtualService, svc *mesh.Service, port *mesh.Port) []plannedRoute {
	var out []plannedRoute
	for _, r := range d.httpRoutesOf(vs) {
		for _, m := range r.matches {
			if (m.port == 0 || int(m.port) == port.Number) && vs.serves(m.gateways, meshGateway) {
				out = append(out, d.httpRoute(r, m, svc, port))
			}
		}
	}
	return out
}

// virtualRoutes returns these routes and, except for undeclared hosts, a default
// route for callers without one.
func (d *domainPlan) virtualRoutes(key layoutKey) []plannedRoute {
	if key.at.service.Undeclared {
		var own *mesh.Service
		if egress := d.service(key.at.service.Hostname); egress != nil && egress.Egress {
			own = egress // Its requests go nowhere else, at any port.
		}
		return d.httpRoutes(key.vs, own, key.at.port)
	}
	otherwise := d.defaultRoute(key.at.service, key.at.port)
	otherwise.instead = !d.pilot().VirtualServiceDefaults
	return append(d.httpRoutes(key.vs, key.at.service, key.at.port), otherwise)
}

// gatewayRoutes returns the routes to a host at a port of gateways.
func (d *domainPlan) gatewayRoutes(b *boundHost, number int) []plannedRoute {
	port := gatewayPort(number)
	var out []plannedRoute
	for _, r := range d.httpRoutesOf(b.vs) {
		for _, m := range r.matches {
			if (m.port == 0 || int(m.port) == number) && b.serves(m.gateways) {
				out = append(out, d.httpRoute(r, m, nil, port))
			}
		}
	}
	return out
}

// gatewayPort returns a port of gateways. It has the name by which Pilot looked up
// the destination's port.
func gatewayPort(number int) *mesh.Port {
	return &mesh.Port{Name: "http", Number: number, Protocol: mesh.HTTP}
}

// httpRoute returns the route for one match; own is nil at a gateway.
func (d *domainPlan) httpRoute(r *httpRoute, m routeMatch, own *mesh.Service, port *mesh.Port) plannedRoute {
	route := r.route
	route.Match, route.StatPrefix = m.match, m.statPrefix
	route.Name = routeName(r.spec.GetName(), m.name)
	out := plannedRoute{source: m.source, sidecarOnly: m.sidecarOnly, rule: 1, partly: m.closed, route: &route}
	switch {
	case r.closed || m.closed:
		out.route = route.Closed(m.match)
		return out
	case route.Redirect != nil:
		route.Redirect = redirectAt(route.Redirect, r.spec.GetRedirect(), port)
		return out
	case route.Response != nil:
		return out
	}
	if own != nil && own.Egress {
		return d.toEgress(out, own, port)
	}
	for i, to := range r.spec.GetRoute() {
		t := d.target(r.of, to.GetDestination(), own, port)
		out.targets = append(out.targets, t)
		route.Clusters = append(route.Clusters, ir.WeightedCluster{
			Name: t.name, Weight: r.weights[i],
			Host:            hostOf(to.GetHeaders().GetRequest()),
			RequestHeaders:  headerOperations(to.GetHeaders().GetRequest()),
			ResponseHeaders: headerOperations(to.GetHeaders().GetResponse()),
		})
	}
	for _, m := range mirrorsOf(r.spec) {
		if n := perMillion(m.percent); n > 0 {
			t := d.target(r.of, m.destination, own, port)
			out.targets = append(out.targets, t)
			route.Mirrors = append(route.Mirrors, ir.Mirror{Cluster: t.name, PerMillion: n})
		}
	}
	return out
}

// routeName returns the name of a route in access logs, as in Istio.
func routeName(route, match string) string {
	if route == "" || match == "" {
		return route + match
	}
	return route + "." + match
}

// redirectAt returns a redirect of requests to the port.
func redirectAt(redirect *ir.Redirect, r *networking.HTTPRedirect, port *mesh.Port) *ir.Redirect {
	out := *redirect
	if schema.ToPortOfRequest(r) {
		out.Port = port.Number
	}
	return &out
}

// target returns where a destination sends requests of one of own's ports. A subset
// has its own cluster, as two subsets may have the same labels, or none.
func (d *domainPlan) target(vs *virtualService, to *networking.Destination, own *mesh.Service, port *mesh.Port) target {
	t := d.version(vs, to, own, port)
	host := d.complete(to.GetHost(), vs.ref.Namespace)
	if _, ok := d.subset(host, to.GetSubset()); !ok {
		return t.ofNoSubset(to.GetSubset())
	}
	if to.GetSubset() != "" && !d.pilot().SubsetsByLabels && d.ruleFor(host).subset(to.GetSubset()) != nil {
		t.subset = to.GetSubset()
		if t.version == "" {
			t.name += "|"
		}
		t.name += "|" + t.subset
	}
	return t
}

// version returns the target of a destination by labels, at its port for requests
// to one of own's ports.
func (d *domainPlan) version(vs *virtualService, to *networking.Destination, own *mesh.Service, port *mesh.Port) target {
	host := d.complete(to.GetHost(), vs.ref.Namespace)
	labels, _ := d.subset(host, to.GetSubset())
	switch {
	case own != nil && host == own.Hostname && d.portFor(to, own, port) == port:
		return d.newTarget(own, port, labels)
	case own != nil && own.External && d.pilot().ExternalRouteEndpoints:
		return d.viaExternal(host, own, port, labels)
	}
	dest := d.service(host)
	if own == nil && dest != nil && dest.Namespace != vs.ref.Namespace && dest != d.seenBy(vs.ref.Namespace, host) {
		dest = nil // A gateway does not lend what it sees to rules of other namespaces.
	}
	if p := d.portFor(to, dest, port); p != nil {
		return d.newTarget(dest, p, labels)
	}
	if number := to.GetPort().GetNumber(); number != 0 && !d.pilot().DestinationPortIgnored {
		port = &mesh.Port{Name: port.Name, Number: int(number), Protocol: port.Protocol}
	}
	return d.blackhole(host, port, labels, vs.ref)
}

// portFor returns the port of a destination that corresponds to a port of another
// service, or nil.
func (d *domainPlan) portFor(to *networking.Destination, dest *mesh.Service, port *mesh.Port) *mesh.Port {
	if dest == nil {
		return nil
	}
	if slices.Contains(dest.Ports, port) && (to.GetPort() == nil || d.pilot().DestinationPortIgnored) {
		return port
	}
	if d.pilot().DestinationPortIgnored {
		return sharedPort(port, dest)
	}
	if to.GetPort().GetNumber() != 0 {
		return dest.Port(int(to.GetPort().GetNumber()))
	}
	if shared := sharedPort(port, dest); shared != nil {
		return shared
	}
	if !port.Protocol.IsHTTP() && len(dest.Ports) == 1 {
		return dest.Ports[0]
	}
	return onlyHTTPPort(dest)
}

// onlyHTTPPort returns the HTTP port of a service if it has exactly one, else nil.
func onlyHTTPPort(svc *mesh.Service) *mesh.Port {
	var found *mesh.Port
	for _, port := range svc.Ports {
		if port.Protocol.IsHTTP() && found != nil {
			return nil
		} else if port.Protocol.IsHTTP() {
			found = port
		}
	}
	return found
}
