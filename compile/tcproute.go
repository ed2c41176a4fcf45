package compile

import (
	"fmt"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
)

// plannedTCP is a route of connections from callers of one source.
type plannedTCP struct {
	source       *source
	destinations []string // blocks; none: any
	to           target
}

// tcpRoutes are the TCP routes of a VirtualService to one port of a service.
func (d *domainPlan) tcpRoutes(vs *virtualService, svc *mesh.Service, port *mesh.Port) []plannedTCP {
	out := d.tlsRoutes(vs, svc, port)
	for _, entry := range vs.spec.GetTcp() {
		to := heaviest(entry.GetRoute())
		matches := entry.GetMatch()
		if len(matches) == 0 {
			matches = []*networking.L4MatchAttributes{nil}
		}
		for _, m := range matches {
			if !tcpMatches(m, port) || !vs.serves(m.GetGateways(), meshGateway) {
				continue
			}
			planned := plannedTCP{
				source:       ownSource(m.GetSourceLabels(), m.GetSourceNamespace()),
				destinations: m.GetDestinationSubnets(),
			}
			switch {
			case len(destinationProblems(planned.destinations)) > 0:
				planned.destinations = nil
				planned.to = d.blackhole(svc.Hostname, port, nil, vs.ref)
			case to == nil || m.GetSourceSubnet() != "":
				planned.to = d.blackhole(svc.Hostname, port, nil, vs.ref)
			default:
				planned.to = d.target(vs, to, svc, port)
			}
			out = append(out, planned)
		}
	}
	return out
}

// tlsRoutes close a port whose connections are to go to several places, by the
// name that the client asks for: nothing here sees it.
func (d *domainPlan) tlsRoutes(vs *virtualService, svc *mesh.Service, port *mesh.Port) []plannedTCP {
	if port.Protocol != mesh.HTTPS && port.Protocol != mesh.TLS {
		return nil
	}
	var out []plannedTCP
	for _, entry := range vs.spec.GetTls() {
		for _, m := range entry.GetMatch() {
			if m.GetPort() != 0 && int(m.GetPort()) != port.Number || !vs.serves(m.GetGateways(), meshGateway) ||
				d.staysAt(vs, entry.GetRoute(), svc, port) {
				continue
			}
			planned := plannedTCP{
				source: ownSource(m.GetSourceLabels(), m.GetSourceNamespace()),
				to:     d.blackhole(svc.Hostname, port, nil, vs.ref),
			}
			if len(destinationProblems(m.GetDestinationSubnets())) == 0 {
				planned.destinations = m.GetDestinationSubnets()
			}
			out = append(out, planned)
		}
	}
	return out
}

// staysAt reports whether the one destination is where connections go without a
// route.
func (d *domainPlan) staysAt(vs *virtualService, route []*networking.RouteDestination, svc *mesh.Service, port *mesh.Port) bool {
	if len(route) != 1 {
		return false
	}
	to := route[0].GetDestination()
	number := to.GetPort().GetNumber()
	return to.GetSubset() == "" && d.complete(to.GetHost(), vs.ref.Namespace) == svc.Hostname &&
		(number == 0 || int(number) == port.Number)
}

func tcpMatches(m *networking.L4MatchAttributes, port *mesh.Port) bool {
	return m.GetPort() == 0 || int(m.GetPort()) == port.Number
}

// destinationProblems are the subnets of a match that are no blocks.
func destinationProblems(subnets []string) []error {
	var out []error
	for _, subnet := range subnets {
		if _, err := ir.ParseDestination(subnet); err != nil {
			out = append(out, err)
		}
	}
	return out
}

// heaviest is the destination that all connections go to, for v1 cannot divide
// them.
func heaviest(route []*networking.RouteDestination) *networking.Destination {
	var found *networking.RouteDestination
	for _, r := range route {
		if found == nil || r.GetWeight() > found.GetWeight() {
			found = r
		}
	}
	return found.GetDestination()
}

// checkTCPRoutes reports what the TCP routes say beyond what Envoys of the v1
// API can do, as proxies in the same namespace see it.
func (d *domainPlan) checkTCPRoutes(vs *virtualService) {
	for i, entry := range vs.spec.GetTcp() {
		at := fmt.Sprintf("spec.tcp[%d]", i)
		for j, m := range entry.GetMatch() {
			d.checkTCPMatch(vs.ref, fmt.Sprintf("%s.match[%d]", at, j), m)
		}
		to := heaviest(entry.GetRoute())
		if len(entry.GetRoute()) > 1 {
			d.notHonoured(vs.ref, at+".route", fmt.Sprintf("all connections go to %s, which has the highest weight: Envoys of the v1 API cannot divide them", to.GetHost()))
		}
		if to != nil {
			d.checkTarget(vs, at+".route", to)
		}
	}
}

func (d *domainPlan) checkTCPMatch(ref diag.Ref, at string, m *networking.L4MatchAttributes) {
	for _, err := range destinationProblems(m.GetDestinationSubnets()) {
		d.notHonoured(ref, at+".destinationSubnets", "connections for the port fail: "+err.Error())
	}
}
