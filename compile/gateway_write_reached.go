package compile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pilot-api/pilot-api/diag"
)

// field is where the host stands in its VirtualService.
func (b binding) field() string {
	return fmt.Sprintf("spec.hosts[%d]", slices.Index(b.vs.spec.GetHosts(), b.host))
}

// words say which server it is.
func (s *gatewayServer) words() string { return fmt.Sprintf("%s of %s", s.field, s.ref()) }

// leaveOut tells VirtualServices that a server of their Gateway is left out.
func (p *plan) leaveOut(out *edgePlan, s *gatewayServer, wanted map[string][]binding) {
	why := fmt.Sprintf("%s, at port %d, is left out", s.words(), s.port)
	for _, host := range s.hosts {
		p.notReached(out, p.wantedAt(claimedHost{host, s.gw, s.toHTTPS}, wanted), why)
	}
}

// notReached tells VirtualServices that their hosts are not served at a server of their
// Gateways.
func (p *plan) notReached(out *edgePlan, hosts []binding, why string) {
	for _, b := range hosts {
		out.served[b] = true
		p.reportNotReached(b, why)
	}
}

func (p *plan) reportNotReached(b binding, why string) {
	p.conflict(diag.HostNotServed, b.vs.ref, b.field(), fmt.Sprintf("%s is not served there: %s", b.host, why))
}

// checkReached reports hosts of VirtualServices at servers to which no client comes that
// asks for them: clients tell by TLS which server they mean, and a more precise one of
// another Gateway may have the host. Its routes are not put together with those of the
// others: it may ask for less of its clients, and who may have routes there its author
// says.
func (p *plan) checkReached(place *edgePlace, bound []boundCandidate) {
	passed := place.passedNames()
	told := map[binding]bool{}
	for _, c := range bound {
		if c.group.tls == nil || told[c.binding] {
			continue
		}
		key := strings.ToLower(c.host)
		owner, by := place.ownerOf(key)
		if route, name := passedBy(passed, key); route != nil && precision(by) < precision(name) {
			if route.host.vs == c.vs {
				continue // Its own TLS routes pass the connections on.
			}
			told[c.binding] = true
			p.reportNotReached(c.binding, fmt.Sprintf("connections for %s at port %d are passed on as %s says, by way of %s", name, place.port, route.host.vs.ref, route.host.gw.ref))
			continue
		}
		if owner == nil || owner == c.group {
			continue
		}
		why := fmt.Sprintf("clients that ask for %s at port %d come to %s, which has the host %s", c.host, place.port, owner.gatewayOf(by), by)
		at := slices.IndexFunc(owner.bound, func(b *boundHost) bool { return b.vs == c.vs && strings.EqualFold(b.host, c.host) })
		if at < 0 {
			told[c.binding] = true
			p.reportNotReached(c.binding, why)
			continue
		}
		p.checkMatchesReached(owner.bound[at], c.by.gw, why)
	}
}

// checkMatchesReached reports matches for requests by way of a Gateway from which none
// come, as another one of the VirtualService has them.
func (p *plan) checkMatchesReached(b *boundHost, lost *gateway, why string) {
	for _, r := range p.httpRoutesOf(b.vs) {
		for _, m := range r.matches {
			if !m.sidecarOnly && b.vs.serves(m.gateways, lost.name()) && !b.serves(m.gateways) {
				p.conflict(diag.HostNotServed, b.vs.ref, fieldIn(r, b.vs), fmt.Sprintf("requests for %s by way of %s do not come: %s", b.host, lost.ref, why))
				break
			}
		}
	}
}

// ownerOf is the group to which clients come that ask for a host, or wildcard, when they
// begin TLS, and the host of its server; nil for none.
func (place *edgePlace) ownerOf(host string) (group *edgeGroup, by string) {
	if group = place.owners[host]; group != nil {
		return group, host
	}
	for wildcard := range wildcards(strings.TrimPrefix(host, "*")) {
		if group = place.owners[wildcard]; group != nil {
			return group, wildcard
		}
	}
	return nil, ""
}

// gatewayOf is the Gateway by which the group has a host.
func (g *edgeGroup) gatewayOf(host string) diag.Ref {
	at := slices.IndexFunc(g.claimed, func(c claimedHost) bool { return c.host == host })
	return g.claimed[at].gw.ref
}

// passedNames are the names for which connections are passed on as they are.
func (place *edgePlace) passedNames() map[string]*edgeRoute {
	out := map[string]*edgeRoute{}
	for _, group := range place.groups {
		for _, route := range group.tlsRoutes {
			for _, name := range route.names {
				if out[name] == nil {
					out[name] = route
				}
			}
		}
	}
	return out
}

// passedBy is the route for connections to a host, or wildcard, and the name by which it
// has them; nil for none.
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
