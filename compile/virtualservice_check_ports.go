package compile

import (
	"fmt"
	"slices"
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/mesh"
)

// checkPorts reports destinations that have no port for a port at which sidecars
// use the routes.
func (d *check) checkPorts(vs *virtualService) {
	sidecars := func(gateways []string) bool { return vs.serves(gateways, meshGateway) }
	for _, name := range vs.meshHosts() {
		host := d.complete(name, vs.ref.Namespace)
		own := d.service(host)
		if d.virtualFor(host) != vs {
			continue
		}
		if own == nil {
			d.checkHTTPPort(vs, gatewayPort(undeclaredPort), fmt.Sprintf("port %d of %s", undeclaredPort, host), func(m routeMatch) bool {
				return vs.serves(m.gateways, meshGateway)
			})
			continue
		}
		d.checkProtocols(vs, own)
		if own.Egress || own.External && d.pilot().ExternalRouteEndpoints {
			continue
		}
		for _, port := range own.Ports {
			if d.routesHTTP(own, port) {
				d.checkHTTPPort(vs, port, fmt.Sprintf("port %d of %s", port.Number, own.Hostname), func(m routeMatch) bool {
					return vs.serves(m.gateways, meshGateway)
				})
			} else if port.Protocol != mesh.UDP {
				d.checkTCPPort(vs, port, fmt.Sprintf("port %d of %s", port.Number, own.Hostname), sidecars)
			}
		}
	}
}

// checkMatchPorts reports ports of matches that no host has. It skips hosts whose
// ports are unknown: those whose rules apply at all HTTP ports, and those at
// gateways.
func (d *check) checkMatchPorts(vs *virtualService) {
	there := map[uint32]bool{0: true, undeclaredPort: true}
	for _, name := range vs.meshHosts() {
		host := d.complete(name, vs.ref.Namespace)
		own := d.service(host)
		if own == nil || d.isLoose(host) {
			return // It may be called at any port.
		}
		for _, port := range own.Ports {
			there[uint32(port.Number)] = true
		}
	}
	if len(vs.meshHosts()) == 0 || len(vs.gatewayNames()) > 0 {
		return
	}
	for _, r := range vs.http {
		for i, m := range r.spec.GetMatch() {
			if !there[m.GetPort()] {
				d.notHonoured(diag.NeverMatches, vs.ref, fmt.Sprintf("%s.match[%d].port", r.field, i), fmt.Sprintf("no request comes to port %d: no host of the VirtualService has it", m.GetPort()))
			}
		}
	}
}

// checkProtocols reports routes of a kind that no port of the service supports.
func (d *check) checkProtocols(vs *virtualService, own *mesh.Service) {
	http := slices.ContainsFunc(own.Ports, func(port *mesh.Port) bool { return d.routesHTTP(own, port) })
	tcp := !own.Egress && slices.ContainsFunc(own.Ports, func(port *mesh.Port) bool {
		return !d.routesHTTP(own, port) && port.Protocol != mesh.UDP
	})
	tls := !own.Egress && slices.ContainsFunc(own.Ports, readsNames)
	if http {
		d.checkUnstated(vs, own)
	}
	d.unsupported(diag.WrongProtocol, vs.ref, "spec", []field{
		{len(vs.http) > 0 && !http, "http", fmt.Sprintf("no effect for sidecars that call %s at its ports: none of them is HTTP, HTTP2 or GRPC", own.Hostname)},
		{len(vs.spec.GetTcp()) > 0 && !tcp, "tcp", fmt.Sprintf("no effect for sidecars that call %s: TCP routes are for ports that are neither HTTP nor UDP, nor of an EgressRule", own.Hostname)},
		{len(vs.spec.GetTls()) > 0 && !tls, "tls", fmt.Sprintf("no effect for sidecars that call %s: none of its ports is HTTPS or TLS", own.Hostname)},
	})
}

// maxPortsNamed is the maximum number of ports that a message lists.
const maxPortsNamed = 10

// checkUnstated reports ports of a service at which HTTP routes have no effect and
// whose protocol is not declared. A declared TCP port is intentional.
func (d *check) checkUnstated(vs *virtualService, own *mesh.Service) {
	var numbers []string
	for _, port := range own.Ports {
		if port.Unstated && !d.routesHTTP(own, port) && vs.asksHTTPAt(port) && !vs.routesTCPAt(port) {
			numbers = append(numbers, fmt.Sprint(port.Number))
		}
	}
	if more := len(numbers) - maxPortsNamed; more > 0 {
		numbers = append(numbers[:maxPortsNamed], fmt.Sprintf("and %d more", more))
	}
	if len(numbers) > 0 {
		d.notHonoured(diag.WrongProtocol, vs.ref, "spec.http", fmt.Sprintf("no effect at ports of %s that have no protocol, which are TCP: %s; give them protocol HTTP, or TCP where that is meant",
			own.Hostname, strings.Join(numbers, ", ")))
	}
}

// asksHTTPAt reports whether an HTTP route applies to requests to the port.
func (vs *virtualService) asksHTTPAt(port *mesh.Port) bool {
	return slices.ContainsFunc(vs.http, func(r *httpRoute) bool {
		return len(r.spec.GetMatch()) == 0 || slices.ContainsFunc(r.spec.GetMatch(), func(m *networking.HTTPMatchRequest) bool {
			return m.GetPort() == 0 || int(m.GetPort()) == port.Number
		})
	})
}

// routesTCPAt reports whether a TCP route applies to connections to the port.
func (vs *virtualService) routesTCPAt(port *mesh.Port) bool {
	return slices.ContainsFunc(vs.spec.GetTcp(), func(r *networking.TCPRoute) bool {
		return slices.ContainsFunc(l4Matches(r), func(m *networking.L4MatchAttributes) bool { return tcpMatches(m, port) })
	})
}

// checkHTTPPort checks the destinations of requests to a port of a service or of
// gateways. there reports whether a match applies there.
func (d *check) checkHTTPPort(vs *virtualService, port *mesh.Port, name string, there func(routeMatch) bool) {
	for _, r := range d.httpRoutesOf(vs) {
		if r.route.Redirect != nil || !slices.ContainsFunc(r.matches, func(m routeMatch) bool {
			return (m.port == 0 || int(m.port) == port.Number) && there(m)
		}) {
			continue
		}
		for at, to := range r.destinations() {
			d.checkPort(r.virtual, at, to, port, "requests to "+name)
		}
	}
}

// checkTCPPort checks the destinations of connections to a port of a service or of
// gateways. there reports whether a match's gateways apply there.
func (d *check) checkTCPPort(vs *virtualService, port *mesh.Port, name string, there func(gateways []string) bool) {
	check := func(at string, route []*networking.RouteDestination) {
		for i, to := range route {
			d.checkPort(vs, fmt.Sprintf("%s.route[%d].destination", at, i), to.GetDestination(), port, "connections to "+name)
		}
	}
	for i, entry := range vs.spec.GetTls() {
		if readsNames(port) && slices.ContainsFunc(entry.GetMatch(), func(m *networking.TLSMatchAttributes) bool {
			return tlsMatches(m, port) && there(m.GetGateways())
		}) {
			check(fmt.Sprintf("spec.tls[%d]", i), entry.GetRoute())
		}
	}
	for i, entry := range vs.spec.GetTcp() {
		if slices.ContainsFunc(l4Matches(entry), func(m *networking.L4MatchAttributes) bool {
			return tcpMatches(m, port) && there(m.GetGateways())
		}) {
			check(fmt.Sprintf("spec.tcp[%d]", i), entry.GetRoute())
		}
	}
}

// checkGatewayPorts reports destinations that have no port for one of a gateway,
// once for all hosts.
func (p *plan) checkGatewayPorts(vs *virtualService) {
	if len(vs.gatewayNames()) == 0 {
		return
	}
	type place struct {
		port int
		kind serverKind
	}
	var places []place
	hosts := map[place][]*boundHost{}
	for _, at := range p.edgeSurvey.Get(p.r, none{}).arrivals[vs] {
		of := place{at.port, at.kind}
		if hosts[of] == nil {
			places = append(places, of)
		}
		hosts[of] = append(hosts[of], at.host)
	}
	home := p.from(p.home(vs.ref.Namespace))
	for _, of := range places {
		there := func(gateways []string) bool {
			return slices.ContainsFunc(hosts[of], func(b *boundHost) bool { return b.serves(gateways) })
		}
		name := fmt.Sprintf("port %d of gateways", of.port)
		switch of.kind {
		case httpServer:
			home.checkHTTPPort(vs, gatewayPort(of.port), name, func(m routeMatch) bool { return !m.sidecarOnly && there(m.gateways) })
		case passthroughServer:
			home.checkTCPPort(vs, &mesh.Port{Name: "tls", Number: of.port, Protocol: mesh.TLS}, name, there)
		default:
			home.checkTCPPort(vs, tcpGatewayPort(of.port), name, there)
		}
	}
}

// checkPort reports a known service that has no port for the caller's port.
func (d *check) checkPort(vs *virtualService, at string, to *networking.Destination, port *mesh.Port, what string) {
	dest := d.service(d.complete(to.GetHost(), vs.ref.Namespace))
	if dest == nil || d.portFor(to, dest, port) != nil {
		return
	}
	missing := portIdentity(port, dest)
	if number := to.GetPort().GetNumber(); number != 0 && !d.pilot().DestinationPortIgnored {
		missing = fmt.Sprintf("number %d", number)
	} else if number == 0 && d.pilot().DestinationPortIgnored && onlyHTTPPort(dest) != nil {
		missing += "; " + switchHint("destinationPortIgnored", "they go to its only HTTP port")
	}
	d.report(diag.Problem{
		Severity: diag.Warning, Reason: diag.NoSuchReference, Code: diag.UnknownPort, Object: vs.ref, Field: at,
		Value:   fmt.Sprintf("%q", dest.Hostname),
		Message: fmt.Sprintf("%s fail there: the service has no port %s", what, missing),
	})
}

// checkDestinationPort reports a destination port that is ignored and is not the
// only HTTP port.
func (d *check) checkDestinationPort(vs *virtualService, at, host string, to *networking.Destination) {
	if port := onlyHTTPPort(d.service(host)); port != nil && port.Number == int(to.GetPort().GetNumber()) {
		return
	}
	d.notHonoured(diag.AsPilot, vs.ref, at, "requests go to the port that has the name of the one they came for (http, at gateways); "+
		switchHint("destinationPortIgnored", "they go to this one"))
}
