package compile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/mesh"
)

// binding is a host of a VirtualService at a server of a Gateway.
type binding struct {
	vs   *virtualService
	host string
}

// boundHost is a host at a port, with all Gateways by which its one
// VirtualService has it there.
type boundHost struct {
	binding
	gateways []string
	gw       *gateway // the first
	toHTTPS  bool
}

// boundCandidate is a binding by a host of a server.
type boundCandidate struct {
	binding
	group *edgeGroup
	by    claimedHost
}

// bindHosts gives each host at each place to one VirtualService, the first of
// the group to which clients come that ask for the host.
func (p *plan) bindHosts(out *edgePlan, place *edgePlace, wanted map[*gateway]map[string][]binding) {
	var all []boundCandidate
	best := map[string]boundCandidate{} // by host in small letters: Envoy compares without case
	for _, group := range place.groups {
		for _, by := range group.claimed {
			for _, b := range p.wantedAt(by, wanted[by.gw]) {
				out.served[b] = true
				c := boundCandidate{b, group, by}
				all = append(all, c)
				key := strings.ToLower(b.host)
				if other, ok := best[key]; group.kind == httpServer && (!ok || precision(other.by.host) < precision(by.host)) {
					best[key] = c
				}
			}
		}
	}
	owners := map[string]*boundHost{}
	type at struct {
		host    *boundHost
		gateway string
	}
	joined := map[at]bool{}
	for _, c := range all {
		key := strings.ToLower(c.host)
		switch first := owners[key]; {
		case c.group.kind != httpServer:
			c.group.bind(c, out, place)
		case c.group != best[key].group:
		case first == nil:
			owners[key] = c.group.bind(c, out, place)
			joined[at{owners[key], c.by.gw.name()}] = true
		case first.vs != c.vs:
			p.conflict(diag.GatewayClaimed, c.vs.ref, "spec.hosts", fmt.Sprintf("requests for %s at port %d follow %s, which comes first", c.host, place.port, first.vs.ref))
		case !joined[at{first, c.by.gw.name()}]:
			joined[at{first, c.by.gw.name()}] = true
			first.gateways = append(first.gateways, c.by.gw.name())
		}
	}
}

func (g *edgeGroup) bind(c boundCandidate, out *edgePlan, place *edgePlace) *boundHost {
	b := &boundHost{c.binding, []string{c.by.gw.name()}, c.by.gw, c.by.toHTTPS}
	g.bound = append(g.bound, b)
	out.arrivals[b.vs] = append(out.arrivals[b.vs], arrival{place.port, g.kind, b})
	return b
}

// precision of a name or wildcard: of those that stand for a host, clients that
// ask for it come to the one with most.
func precision(host string) int {
	if strings.HasPrefix(host, "*") {
		return len(host)
	}
	return 1 << 16
}

// serves reports whether a match's list of gateways has one of the host's.
func (b *boundHost) serves(gateways []string) bool {
	return slices.ContainsFunc(b.gateways, func(name string) bool { return b.vs.serves(gateways, name) })
}

// hostsOf has the hosts of VirtualServices under each text that may stand for
// them at a server: the same, or a leading wildcard and any ending.
func hostsOf(bound []*virtualService) map[string][]binding {
	out := map[string][]binding{}
	for _, vs := range bound {
		for _, host := range vs.spec.GetHosts() {
			b, key := binding{vs, host}, strings.ToLower(host)
			if !strings.HasPrefix(host, "*") {
				out[key] = append(out[key], b)
			}
			for wildcard := range wildcards(key) {
				out[wildcard] = append(out[wildcard], b)
			}
		}
	}
	return out
}

// wantedAt are the hosts that VirtualServices want at a host of a server.
func (p *plan) wantedAt(by claimedHost, hosts map[string][]binding) []binding {
	var out []binding
	for _, b := range hosts[by.host] {
		exported := p.pilot().AnyNamespaceRules || mesh.Exported(b.vs.exportTo(), b.vs.ref.Namespace, by.gw.ref.Namespace)
		if exported && (by.namespace == "*" || by.namespace == b.vs.ref.Namespace) {
			out = append(out, b)
		}
	}
	return out
}

// checkBound reports gateways that are not there, and hosts that they do not
// serve.
func (p *plan) checkBound(vs *virtualService) {
	names := vs.gatewayNames()
	if len(names) == 0 {
		return
	}
	for _, name := range names {
		if len(p.gatewayNamed.under(p, name)) == 0 {
			p.report(diag.Problem{
				Severity: diag.Warning, Reason: diag.NoSuchReference, Code: diag.UnknownGateway, Object: vs.ref, Field: "spec.gateways",
				Value: fmt.Sprintf("%q", name), Message: "there is no such Gateway, so nothing is served there",
			})
		}
	}
	survey := p.edgeSurvey.Get(p.r, none{})
	for i, host := range vs.spec.GetHosts() {
		if !survey.served[binding{vs, host}] {
			p.notHonoured(diag.HostNotServed, vs.ref, fmt.Sprintf("spec.hosts[%d]", i), fmt.Sprintf("no server of its gateways has the host %s, so it is not served there", host))
		}
	}
}
