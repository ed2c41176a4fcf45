package compile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pilot-api/pilot-api/diag"
)

// field returns the field of the host in its VirtualService.
func (b binding) field() string {
	return fmt.Sprintf("spec.hosts[%d]", slices.Index(b.vs.spec.GetHosts(), b.host))
}

// words describes the server in a message.
func (s *gatewayServer) words() string { return fmt.Sprintf("%s of %s", s.field, s.ref()) }

// leaveOut reports to VirtualServices that a server of their Gateway is left out.
func (p *plan) leaveOut(out *edgePlan, s *gatewayServer, wanted map[string][]binding) {
	why := fmt.Sprintf("%s, at port %d, is left out", s.words(), s.port)
	for _, host := range s.hosts {
		p.notReached(out, p.wantedAt(claimedHost{host, s.gw, s.toHTTPS}, wanted), why)
	}
}

// notReached reports to VirtualServices that their hosts are not served at a server
// of their Gateways.
func (rp *reporter) notReached(out *edgePlan, hosts []binding, why string) {
	for _, b := range hosts {
		out.served[b] = true
		rp.reportNotReached(b, why)
	}
}

func (rp *reporter) reportNotReached(b binding, why string) {
	rp.conflict(diag.HostNotServed, b.vs.ref, b.field(), fmt.Sprintf("%s is not served there: %s", b.host, why))
}

// checkReached reports hosts of VirtualServices at servers that no client asking
// for the host reaches. Clients choose the server by TLS, and a more precise server
// of another Gateway may have the host. Its routes are not merged with the others:
// that server may ask for less of its clients, and its author decides who may have
// routes there.
func (p *plan) checkReached(listener *edgeListener, bound []boundCandidate) {
	passed := listener.passedNames(func(*source) bool { return true })
	told := map[binding]bool{}
	for _, c := range bound {
		if c.group.tls == nil || told[c.binding] {
			continue
		}
		key := strings.ToLower(c.host)
		owner, by := listener.ownerOf(key)
		if route, name := passedBy(passed, key); route != nil && precision(by) < precision(name) {
			if route.host.vs == c.vs {
				continue // Its own TLS routes pass the connections on.
			}
			told[c.binding] = true
			p.reportNotReached(c.binding, fmt.Sprintf("connections for %s at port %d are passed on as %s says, through %s", name, listener.port, route.host.vs.ref, route.host.gw.ref))
			continue
		}
		if owner == nil || owner == c.group {
			continue
		}
		why := fmt.Sprintf("clients that ask for %s at port %d come to %s, which has the host %s", c.host, listener.port, owner.gatewayOf(by), by)
		at := slices.IndexFunc(owner.bound, func(b *boundHost) bool { return b.vs == c.vs && strings.EqualFold(b.host, c.host) })
		if at < 0 {
			told[c.binding] = true
			p.reportNotReached(c.binding, why)
			continue
		}
		p.checkMatchesReached(owner.bound[at], c.by.gw, why)
	}
}

// checkMatchesReached reports matches for requests through a Gateway from which
// none arrive, because another Gateway of the VirtualService gets them.
func (p *plan) checkMatchesReached(b *boundHost, lost *gateway, why string) {
	for _, r := range p.httpRoutesOf(b.vs) {
		for _, m := range r.matches {
			if !m.sidecarOnly && b.vs.serves(m.gateways, lost.name()) && !b.serves(m.gateways) {
				p.conflict(diag.HostNotServed, b.vs.ref, fieldIn(r, b.vs), fmt.Sprintf("requests for %s do not arrive through %s: %s", b.host, lost.ref, why))
				break
			}
		}
	}
}

// ownerOf returns the group that clients reach when they send a host, or wildcard,
// as server name, and the matching host of its server; nil if there is none.
func (listener *edgeListener) ownerOf(host string) (group *edgeGroup, by string) {
	if group = listener.owners[host]; group != nil {
		return group, host
	}
	for wildcard := range wildcards(strings.TrimPrefix(host, "*")) {
		if group = listener.owners[wildcard]; group != nil {
			return group, wildcard
		}
	}
	return nil, ""
}

// gatewayOf returns the Gateway through which the group has a host.
func (g *edgeGroup) gatewayOf(host string) diag.Ref {
	at := slices.IndexFunc(g.claimed, func(c claimedHost) bool { return c.host == host })
	return g.claimed[at].gw.ref
}

// passedNames returns the server names whose connections are passed through without
// terminating TLS, by routes for the sources that fit.
func (listener *edgeListener) passedNames(fits func(*source) bool) map[string]*edgeRoute {
	out := map[string]*edgeRoute{}
	for _, group := range listener.groups {
		for _, route := range group.tlsRoutes {
			for _, name := range route.names {
				if out[name] == nil && fits(route.source) {
					out[name] = route
				}
			}
		}
	}
	return out
}

// passedBy returns the route for connections to a host, or wildcard, and the name
// through which it gets them; nil if there is none.
func passedBy(names map[string]*edgeRoute, host string) (route *edgeRoute, by string) {
	if route = names[host]; route != nil {
		return route, host
	}
	for wildcard := range wildcards(strings.TrimPrefix(host, "*")) {
		if route = names[wildcard]; route != nil {
			return route, wildcard
		}
	}
	return nil, ""
}
