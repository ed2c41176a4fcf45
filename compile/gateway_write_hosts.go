package compile

import (
	"fmt"
	"maps"
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

// boundHost is a host of a VirtualService at a port, with all Gateways through
// which the VirtualService has it there.
type boundHost struct {
	binding
	gateways []string
	gw       *gateway // the first
	toHTTPS  bool
}

// boundCandidate is a binding through a host of a server.
type boundCandidate struct {
	binding
	group *edgeGroup
	by    claimedHost
}

// bindHosts binds each host of a listener to its VirtualServices, in the group that
// clients asking for the host reach. It returns all bindings.
func (p *plan) bindHosts(out *edgePlan, listener *edgeListener, wanted map[*gateway]map[string][]binding) []boundCandidate {
	all := p.permitted(listener, p.candidatesAt(out, listener, wanted))
	owners := map[string][]*boundHost{}
	type at struct {
		host    *boundHost
		gateway string
	}
	joined := map[at]bool{}
	for _, c := range all {
		if c.group.kind != httpServer {
			c.group.bind(c, out, listener)
			continue
		}
		key := strings.ToLower(c.host)
		if owner, _ := listener.ownerOf(key); owner != nil && owner != c.group {
			continue // checkReached reports it.
		}
		known := slices.IndexFunc(owners[key], func(b *boundHost) bool { return b.vs == c.vs })
		if known < 0 {
			known = len(owners[key])
			owners[key] = append(owners[key], c.group.bind(c, out, listener))
		} else if b := owners[key][known]; !joined[at{b, c.by.gw.name()}] {
			b.gateways = append(b.gateways, c.by.gw.name())
		}
		joined[at{owners[key][known], c.by.gw.name()}] = true
	}
	for _, key := range slices.Sorted(maps.Keys(owners)) {
		p.checkMerged(listener, p.inMergeOrder(owners[key]))
	}
	return all
}

// candidatesAt returns all bindings of a listener.
func (rd *reader) candidatesAt(out *edgePlan, listener *edgeListener, wanted map[*gateway]map[string][]binding) (all []boundCandidate) {
	for _, group := range listener.groups {
		for _, by := range group.claimed {
			for _, b := range rd.wantedAt(by, wanted[by.gw]) {
				out.served[b] = true
				all = append(all, boundCandidate{b, group, by})
			}
		}
	}
	return all
}

func (g *edgeGroup) bind(c boundCandidate, out *edgePlan, listener *edgeListener) *boundHost {
	b := &boundHost{c.binding, []string{c.by.gw.name()}, c.by.gw, c.by.toHTTPS}
	g.bound = append(g.bound, b)
	out.arrivals[b.vs] = append(out.arrivals[b.vs], arrival{listener.port, g.kind, b})
	return b
}

// precision returns how precise a name or wildcard is: of those that match a host,
// its clients reach the most precise one.
func precision(host string) int {
	if strings.HasPrefix(host, "*") {
		return len(host)
	}
	return 1 << 16
}

// serves reports whether a match's list of gateways contains one of the host's.
func (b *boundHost) serves(gateways []string) bool {
	return slices.ContainsFunc(b.gateways, func(name string) bool { return b.vs.serves(gateways, name) })
}

// hostsOf returns the hosts of VirtualServices under each text that may stand for
// them at a server: the host itself, or a leading wildcard with any of its endings.
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

// wantedAt returns the hosts that VirtualServices want at a host of a server.
func (rd *reader) wantedAt(by claimedHost, hosts map[string][]binding) []binding {
	var out []binding
	for _, b := range hosts[by.host] {
		exported := rd.pilot().AnyNamespaceRules || mesh.Exported(b.vs.exportTo(), b.vs.ref.Namespace, by.gw.ref.Namespace)
		if exported && (by.namespace == "*" || by.namespace == b.vs.ref.Namespace) {
			out = append(out, b)
		}
	}
	return out
}

// checkBound reports gateways that do not exist, and hosts that they do not serve.
func (p *plan) checkBound(vs *virtualService) {
	names := vs.gatewayNames()
	if len(names) == 0 {
		return
	}
	for _, name := range names {
		if len(p.gatewayNamed.under(&p.reader, name)) == 0 {
			p.report(diag.Problem{
				Severity: diag.Warning, Reason: diag.NoSuchReference, Code: diag.UnknownGateway, Object: vs.ref, Field: "spec.gateways",
				Value: fmt.Sprintf("%q", name), Message: "there is no such Gateway, so nothing is served there",
			})
		}
	}
	survey := p.edgeSurvey.Get(p.r, none{})
	for _, host := range vs.spec.GetHosts() {
		if b := (binding{vs, host}); !survey.served[b] {
			p.notHonoured(diag.HostNotServed, vs.ref, b.field(), fmt.Sprintf("no server of its gateways has the host %s, so it is not served there", host))
		}
	}
}
