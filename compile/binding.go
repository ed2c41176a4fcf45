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
}

// bindHosts gives each host at each port to one VirtualService.
func (p *plan) bindHosts(out *edgePlan) {
	type address struct {
		port int
		host string // in small letters: Envoy compares without case
	}
	owners := map[address]*boundHost{}
	for _, gw := range out.gateways {
		hosts := hostsOf(p.byGateway.under(p, gw.name()))
		for _, server := range gw.servers {
			for _, b := range p.wantedAt(gw, server, hosts) {
				out.served[b] = true
				at := address{server.port, strings.ToLower(b.host)}
				switch first := owners[at]; {
				case first == nil:
					owners[at] = &boundHost{b, []string{gw.name()}}
					server.bound = append(server.bound, owners[at])
					out.arrivals[b.vs] = append(out.arrivals[b.vs], arrival{server.port, owners[at]})
				case first.vs == b.vs:
					first.gateways = append(first.gateways, gw.name())
				default:
					p.conflict(b.vs.ref, "spec.hosts", fmt.Sprintf("requests for %s at port %d follow %s, which comes first", b.host, server.port, first.vs.ref))
				}
			}
		}
	}
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
			b := binding{vs, host}
			if !strings.HasPrefix(host, "*") {
				out[host] = append(out[host], b)
			}
			for wildcard := range wildcards(host) {
				out[wildcard] = append(out[wildcard], b)
			}
		}
	}
	return out
}

// wantedAt are the hosts that VirtualServices want at a server. Before a slash
// in a server's host stands the namespace that the VirtualService must be in.
func (p *plan) wantedAt(gw *gateway, server *gatewayServer, hosts map[string][]binding) []binding {
	var out []binding
	for _, pattern := range server.hosts {
		of, host, ok := strings.Cut(pattern, "/")
		switch {
		case !ok:
			of, host = "*", pattern
		case of == ".":
			of = gw.ref.Namespace
		}
		for _, b := range hosts[host] {
			exported := p.pilot().AnyNamespaceRules || mesh.Exported(b.vs.exportTo(), b.vs.ref.Namespace, gw.ref.Namespace)
			if exported && (of == "*" || of == b.vs.ref.Namespace) {
				out = append(out, b)
			}
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
	edges := p.edges.Get(p.r, none{})
	for _, name := range names {
		if !slices.ContainsFunc(edges.gateways, func(gw *gateway) bool { return gw.name() == name }) {
			p.report(diag.Problem{
				Severity: diag.Warning, Reason: diag.NoSuchReference, Object: vs.ref, Field: "spec.gateways",
				Value: fmt.Sprintf("%q", name), Message: "there is no such Gateway, so nothing is served there",
			})
		}
	}
	for i, host := range vs.spec.GetHosts() {
		if !edges.served[binding{vs, host}] {
			p.notHonoured(vs.ref, fmt.Sprintf("spec.hosts[%d]", i), fmt.Sprintf("no server of its gateways has the host %s, so it is not served there", host))
		}
	}
}
