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
func (v *viewpoint) httpRoutes(vs *virtualService, svc *mesh.Service, port *mesh.Port) []plannedRoute {
	var out []plannedRoute
	for _, r := range v.httpRoutesOf(vs) {
		for _, m := range r.matches {
			if (m.port == 0 || int(m.port) == port.Number) && vs.serves(m.gateways, meshGateway) {
				out = append(out, guarded(v.httpRoute(r, m, svc, port))...)
			}
		}
	}
	return out
}

// virtualRoutes returns these routes and, except for undeclared hosts, a default
// route for callers without one.
func (v *viewpoint) virtualRoutes(key layoutKey) []plannedRoute {
	if key.at.service.Undeclared {
		var own *mesh.Service
		if egress := v.service(key.at.service.Hostname); egress != nil && egress.Egress {
			own = egress // Its requests go nowhere else, at any port.
		}
		return v.httpRoutes(key.vs, own, key.at.port)
	}
	otherwise := v.defaultRoute(key.at.service, key.at.port)
	otherwise.instead = !v.pilot().VirtualServiceDefaults
	return append(v.httpRoutes(key.vs, key.at.service, key.at.port), otherwise)
}

// gatewayRoutes returns the routes to a host at a port of gateways.
func (v *viewpoint) gatewayRoutes(b *boundHost, number int) []plannedRoute {
	port := gatewayPort(number)
	var out []plannedRoute
	for _, r := range v.httpRoutesOf(b.vs) {
		for _, m := range r.matches {
			if (m.port == 0 || int(m.port) == number) && b.serves(m.gateways) {
				out = append(out, guarded(v.httpRoute(r, m, nil, port))...)
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
func (v *viewpoint) httpRoute(r *httpRoute, m routeMatch, own *mesh.Service, port *mesh.Port) plannedRoute {
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
		return v.toEgress(out, own, port)
	}
	for i, to := range r.spec.GetRoute() {
		t := v.target(r.virtual, to.GetDestination(), own, port)
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
			t := v.target(r.virtual, m.destination, own, port)
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
func (v *viewpoint) target(vs *virtualService, to *networking.Destination, own *mesh.Service, port *mesh.Port) target {
	t := v.version(vs, to, own, port)
	host := v.complete(to.GetHost(), vs.ref.Namespace)
	if _, ok := v.subset(host, to.GetSubset()); !ok {
		return t.ofNoSubset(to.GetSubset())
	}
	if to.GetSubset() != "" && !v.pilot().SubsetsByLabels && v.ruleFor(host).subset(to.GetSubset()) != nil {
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
func (v *viewpoint) version(vs *virtualService, to *networking.Destination, own *mesh.Service, port *mesh.Port) target {
	host := v.complete(to.GetHost(), vs.ref.Namespace)
	labels, _ := v.subset(host, to.GetSubset())
	switch {
	case own != nil && host == own.Hostname && v.portFor(to, own, port) == port:
		return v.newTarget(own, port, labels)
	case own != nil && own.External && v.pilot().ExternalRouteEndpoints:
		return v.viaExternal(host, own, port, labels)
	}
	dest := v.service(host)
	if own == nil && dest != nil && dest.Namespace != vs.ref.Namespace && dest != v.seenBy(vs.ref.Namespace, host) {
		dest = nil // A gateway does not lend what it sees to rules of other namespaces.
	}
	if p := v.portFor(to, dest, port); p != nil {
		return v.newTarget(dest, p, labels)
	}
	if number := to.GetPort().GetNumber(); number != 0 && !v.pilot().DestinationPortIgnored {
		port = &mesh.Port{Name: port.Name, Number: int(number), Protocol: port.Protocol}
	}
	return v.blackhole(host, port, labels, vs.ref)
}

// portFor returns the port of a destination that corresponds to a port of another
// service, or nil.
func (v *viewpoint) portFor(to *networking.Destination, dest *mesh.Service, port *mesh.Port) *mesh.Port {
	if dest == nil {
		return nil
	}
	if slices.Contains(dest.Ports, port) && (to.GetPort() == nil || v.pilot().DestinationPortIgnored) {
		return port
	}
	if v.pilot().DestinationPortIgnored {
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
