package compile

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// egressRule is an EgressRule that names a host.
type egressRule struct {
	declared
	spec *schema.EgressRule
}

// egressPlan is the result of all EgressRules.
type egressPlan struct {
	services []*mesh.Service          // their hosts, in tie-break order
	byHost   map[string]*mesh.Service // the same by host
	under    map[string]portSums      // sums by the wildcards that cover the hosts
	closed   []int                    // ports of withheld services
	problems diag.List
}

func readEgressRule(p *plan, of declared, spec *schema.EgressRule) *egressRule {
	if spec.Destination == nil || spec.Destination.Service == "" {
		p.reportNoDestination(of.ref)
		return nil
	}
	return &egressRule{of, spec}
}

// planEgress makes services of the hosts that EgressRules open. Connections go to
// the destination that the caller chose.
func (p *plan) planEgress() *egressPlan {
	out := &egressPlan{byHost: map[string]*mesh.Service{}, under: map[string]portSums{}}
	protocols := map[int]egressClaim{}
	for _, rule := range p.egressRules.rules(p) {
		host, ref := rule.spec.Destination.Service, rule.ref
		first := p.registered(host)
		if first == nil {
			first = out.byHost[host]
		}
		if first != nil {
			p.conflict(diag.HostClaimed, ref, "spec.destination.service", fmt.Sprintf(
				"the whole rule has no effect: %s has the same host, and comes first", first.Origin))
			continue
		}
		if !p.claimPorts(ref, rule.spec.Ports, protocols) {
			continue
		}
		svc := &mesh.Service{
			Hostname: host, Namespace: ref.Namespace, Created: rule.object.Meta.CreationTimestamp.Time,
			External: true, Egress: true, Resolution: mesh.Passthrough, Origin: rule.object.Key(),
			Ports: p.egressPorts(ref, host, rule.spec.Ports),
		}
		out.services = append(out.services, svc)
		out.byHost[host] = svc
		ports := p.countPorts(svc)
		for wildcard := range wildcards(host) {
			sums := out.under[wildcard]
			out.under[wildcard] = portSums{sums.http + ports.http, sums.other + ports.other}
		}
	}
	out.problems = p.problems.List()
	return out
}

// openEgress removes withheld services.
func (p *plan) openEgress(none) *egressPlan {
	all := p.egressDeclared.Get(p.r, none{})
	isWithheld := func(svc *mesh.Service) bool { return p.budget.withheld.Get(p.r, svc.Origin).Withheld() }
	out := *all
	out.services, out.byHost = nil, map[string]*mesh.Service{}
	for _, svc := range all.services {
		if isWithheld(svc) {
			for _, port := range svc.Ports {
				out.closed = append(out.closed, port.Number)
			}
			continue
		}
		out.services = append(out.services, svc)
		out.byHost[svc.Hostname] = svc
	}
	if len(out.services) == len(all.services) {
		return all
	}
	slices.Sort(out.closed)
	out.closed = slices.Compact(out.closed)
	return &out
}

// checkEgressRule reports a rule that is withheld.
func (p *plan) checkEgressRule(rule *egressRule) {
	if excess := p.excess(rule.declared); excess.Withheld() {
		p.reportExcess(excess, rule.ref, egressCost(p, rule), "its host is not opened, and callers refuse what they do not know at its ports")
	}
}

// egressServices returns the hosts of EgressRules as services.
func (p *plan) egressServices() []*mesh.Service { return p.egress.Get(p.r, none{}).services }

// egressClaim is the first use of a port and its protocol: HTTP of any kind, TCP or
// Mongo.
type egressClaim struct {
	protocol mesh.Protocol
	ref      diag.Ref
}

// claimPorts reports whether a rule agrees with all rules before it about the
// protocol of its ports. As in Pilot, the ports before the first conflict still
// count as claimed.
func (p *plan) claimPorts(ref diag.Ref, ports []schema.EgressPort, protocols map[int]egressClaim) bool {
	for i, port := range ports {
		protocol, _ := mesh.ParseProtocol(port.Protocol)
		if protocol.IsHTTP() || protocol == mesh.HTTPS {
			protocol = mesh.HTTP
		}
		number := int(port.Port)
		if first, taken := protocols[number]; taken && first.protocol != protocol {
			p.conflict(diag.PortClaimed, ref, fmt.Sprintf("spec.ports[%d]", i), fmt.Sprintf(
				"the whole rule has no effect: port %d is %s here and %s in %s, which comes first by namespace and name",
				number, protocol, first.protocol, first.ref))
			return false
		} else if !taken {
			protocols[number] = egressClaim{protocol, ref}
		}
	}
	return true
}

// egressPorts omits ports that cannot be distinguished: a connection has an address
// and no host.
func (p *plan) egressPorts(ref diag.Ref, host string, ports []schema.EgressPort) []*mesh.Port {
	var out []*mesh.Port
	for i, port := range ports {
		protocol, known := mesh.ParseProtocol(port.Protocol)
		plain := protocol == mesh.TCP || protocol == mesh.Mongo
		switch {
		case !known || !plain && !protocol.IsHTTP() && protocol != mesh.HTTPS:
			p.notHonoured(diag.PartLeftOut, ref, fmt.Sprintf("spec.ports[%d].protocol", i), "the port is left out: use http, http2, grpc, https, tcp or mongo")
		case plain && !isAddress(host):
			p.notHonoured(diag.PartLeftOut, ref, fmt.Sprintf("spec.ports[%d]", i), "the port is left out: TCP needs an address or a block of them as spec.destination.service")
		default:
			out = append(out, &mesh.Port{Number: int(port.Port), Protocol: protocol})
		}
	}
	return out
}

func isAddress(host string) bool {
	_, block := netip.ParsePrefix(host)
	_, address := netip.ParseAddr(host)
	return block == nil || address == nil
}
