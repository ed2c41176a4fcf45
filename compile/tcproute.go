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
	var out []plannedTCP
	for _, entry := range vs.spec.GetTcp() {
		to := heaviest(entry.GetRoute())
		if to == nil {
			continue
		}
		matches := entry.GetMatch()
		if len(matches) == 0 {
			matches = []*networking.L4MatchAttributes{nil}
		}
		for _, m := range matches {
			if !tcpMatches(m, port) || !vs.serves(m.GetGateways(), meshGateway) {
				continue
			}
			out = append(out, plannedTCP{
				source:       ownSource(m.GetSourceLabels(), m.GetSourceNamespace()),
				destinations: m.GetDestinationSubnets(),
				to:           d.target(vs, to, svc, port),
			})
		}
	}
	return out
}

func tcpMatches(m *networking.L4MatchAttributes, port *mesh.Port) bool {
	return len(destinationProblems(m)) == 0 && m.GetSourceSubnet() == "" &&
		(m.GetPort() == 0 || int(m.GetPort()) == port.Number)
}

// destinationProblems are the subnets of a match that are no blocks.
func destinationProblems(m *networking.L4MatchAttributes) []error {
	var out []error
	for _, subnet := range m.GetDestinationSubnets() {
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
	for _, err := range destinationProblems(m) {
		d.notHonoured(ref, at+".destinationSubnets", "the match is left out: "+err.Error())
	}
}
