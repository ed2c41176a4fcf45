package compile

import (
	"fmt"
	"maps"
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
	claims := map[int]egressClaim{}
	for _, rule := range p.egressRules.rules(&p.reader) {
		host, ref := rule.spec.Destination.Service, rule.ref
		if why := p.whyNotOpened(host, out); why != "" {
			p.conflict(diag.HostClaimed, ref, "spec.destination.service", "the whole rule has no effect: "+why)
			continue
		}
		ports := p.egressPorts(ref, host, rule.spec.Ports)
		if len(ports) == 0 || !p.claimPorts(ref, ports, claims) {
			continue
		}
		p.checkPrivate(ref, host)
		svc := &mesh.Service{
			Hostname: host, Namespace: ref.Namespace, Created: rule.object.Meta.CreationTimestamp.Time,
			External: true, Egress: true, Resolution: mesh.Passthrough, Origin: rule.object.Key(),
		}
		for _, port := range ports {
			svc.Ports = append(svc.Ports, port.Port)
		}
		out.services = append(out.services, svc)
		out.byHost[host] = svc
		count := p.countPorts(svc)
		for wildcard := range wildcards(host) {
			sums := out.under[wildcard]
			out.under[wildcard] = portSums{sums.http + count.http, sums.other + count.other}
		}
	}
	out.problems = p.problems.List()
	return out
}

// whyNotOpened says why a rule does not open its host: a ServiceEntry declares it for
// all namespaces, or another rule opens it. It returns "" if the rule does.
func (rd *reader) whyNotOpened(host string, opened *egressPlan) string {
	if svc := rd.registeredIn("", host); svc != nil {
		return fmt.Sprintf("%s declares the host for all namespaces", svc.Origin)
	}
	if svc := opened.byHost[host]; svc != nil {
		return fmt.Sprintf("%s is for the same host, and %s", svc.Origin, rd.firstBecause())
	}
	return ""
}

// checkPrivate reports a rule whose host is another service to some callers.
func (p *plan) checkPrivate(ref diag.Ref, host string) {
	for _, svc := range p.registry.byHost.under(&p.reader, host) {
		if slices.ContainsFunc(audiences(svc), svc.VisibleIn) {
			p.conflict(diag.HostClaimed, ref, "spec.destination.service", fmt.Sprintf(
				"%s declares the same host for some namespaces: callers there follow that one", svc.Origin))
			return
		}
	}
}

// openEgress removes withheld services.
func (rd *reader) openEgress(none) *egressPlan {
	all := rd.egressDeclared.Get(rd.r, none{})
	isWithheld := func(svc *mesh.Service) bool { return rd.budget.withheld.Get(rd.r, svc.Origin).Withheld() }
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
		p.reportExcess(excess, rule.ref, egressCost(p, rule), "its host is not opened, and callers refuse unknown hosts at its ports")
	}
}

// egressServices returns the hosts of EgressRules as services.
func (rd *reader) egressServices() []*mesh.Service { return rd.egress.Get(rd.r, none{}).services }

// egressIn returns the hosts of EgressRules for callers in a namespace. They do not
// include hosts that a service of the registry has there.
func (rd *reader) egressIn(namespace string) []*mesh.Service {
	return slices.DeleteFunc(slices.Clone(rd.egressServices()), func(svc *mesh.Service) bool {
		return rd.registeredIn(namespace, svc.Hostname) != nil
	})
}

// egressClaim is the first use of a port and its protocol: HTTP of any kind, TCP or
// Mongo.
type egressClaim struct {
	protocol mesh.Protocol
	ref      diag.Ref
}

// egressPort is a port that a rule opens.
type egressPort struct {
	*mesh.Port
	field string
}

// claimPorts reports whether a rule agrees with all rules before it, and with itself,
// about the protocol of its ports. If it does not, it claims none of them.
func (p *plan) claimPorts(ref diag.Ref, ports []egressPort, claims map[int]egressClaim) bool {
	own := map[int]egressClaim{}
	for _, port := range ports {
		protocol := port.Protocol
		if protocol.IsHTTP() || protocol == mesh.HTTPS {
			protocol = mesh.HTTP
		}
		first, taken := claims[port.Number]
		if !taken {
			first, taken = own[port.Number]
		}
		switch {
		case !taken:
			own[port.Number] = egressClaim{protocol, ref}
		case first.ref == ref && first.protocol != protocol:
			p.conflict(diag.PortClaimed, ref, port.field, fmt.Sprintf(
				"the whole rule has no effect: port %d is both %s and %s", port.Number, first.protocol, protocol))
			return false
		case first.protocol != protocol:
			p.conflict(diag.PortClaimed, ref, port.field, fmt.Sprintf(
				"the whole rule has no effect: port %d is %s here and %s in %s, which %s",
				port.Number, protocol, first.protocol, first.ref, p.firstBecause()))
			return false
		}
	}
	maps.Copy(claims, own)
	return true
}

// egressPorts omits ports that cannot be distinguished: a connection has an address
// and no host.
func (rp *reporter) egressPorts(ref diag.Ref, host string, ports []schema.EgressPort) []egressPort {
	var out []egressPort
	for i, port := range ports {
		field := fmt.Sprintf("spec.ports[%d]", i)
		protocol, known := mesh.ParseProtocol(port.Protocol)
		plain := protocol == mesh.TCP || protocol == mesh.Mongo
		switch {
		case !known || !plain && !protocol.IsHTTP() && protocol != mesh.HTTPS:
			rp.notHonoured(diag.PartLeftOut, ref, field+".protocol", "the port is left out: use http, http2, grpc, https, tcp or mongo")
		case plain && !isAddress(host):
			rp.notHonoured(diag.PartLeftOut, ref, field, "the port is left out: TCP needs an address or a block of them as spec.destination.service")
		default:
			out = append(out, egressPort{&mesh.Port{Number: int(port.Port), Protocol: protocol}, field})
		}
	}
	return out
}

func isAddress(host string) bool {
	_, block := netip.ParsePrefix(host)
	_, address := netip.ParseAddr(host)
	return block == nil || address == nil
}
