package compile

import (
	"fmt"
	"slices"
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
)

// edgeRoute is a route for connections that gateways pass through without
// terminating TLS, with the server names that belong to it alone.
type edgeRoute struct {
	host  *boundHost
	entry *networking.TLSRoute
	match *networking.TLSMatchAttributes // nil if connections fail
	names []string                       // empty for any
	// source is the gateways that follow it, or nil for any.
	source *source
}

// nameRoutes gives each name of a listener to the first route that has it, in the
// author's order. Between VirtualServices, as between servers, the more precise
// name wins.
func (p *plan) nameRoutes(listener *edgeListener) {
	taken := map[string]diag.Ref{}
	for name, group := range listener.owners {
		taken[name] = group.ref()
	}
	for _, group := range listener.groups {
		for _, b := range group.bound {
			if group.kind == passthroughServer && p.connectionsWithheld(b.vs) {
				p.closeHost(group, b, taken)
			} else if group.kind == passthroughServer {
				p.nameHost(listener, group, b, taken)
			}
		}
	}
}

// closeHost makes connections to a host of a withheld VirtualService fail, unless
// others have its name.
func (rd *reader) closeHost(group *edgeGroup, b *boundHost, taken map[string]diag.Ref) {
	name := strings.ToLower(b.host)
	if _, lost := taken[name]; lost || len(b.vs.spec.GetTls()) == 0 {
		return
	}
	taken[name] = b.vs.ref
	group.tlsRoutes = append(group.tlsRoutes, &edgeRoute{host: b, names: []string{name}})
}

// nameHost adds the routes for one host of a VirtualService.
func (rp *reporter) nameHost(listener *edgeListener, group *edgeGroup, b *boundHost, taken map[string]diag.Ref) {
	var own []string
	for i, entry := range b.vs.spec.GetTls() {
		for j, m := range entry.GetMatch() {
			if !tlsMatches(m, gatewayPort(listener.port)) || !b.serves(m.GetGateways()) {
				continue
			}
			route := &edgeRoute{host: b, entry: entry, match: m, source: ownSource(m.GetSourceLabels(), m.GetSourceNamespace())}
			for _, name := range m.GetSniHosts() {
				name = strings.ToLower(name)
				limited := len(m.GetDestinationSubnets()) > 0 || route.source != nil
				switch first, lost := taken[name]; {
				case !covers(strings.ToLower(b.host), name) && b.host != "*":
				case slices.ContainsFunc(own, func(wide string) bool { return covers(wide, name) }):
				case lost && first != b.vs.ref:
					rp.conflict(diag.GatewayClaimed, b.vs.ref, fmt.Sprintf("spec.tls[%d].match[%d].sniHosts", i, j),
						fmt.Sprintf("clients that ask for %s at port %d come to %s, which comes first", name, listener.port, first))
				default:
					route.names = append(route.names, name)
					taken[name] = b.vs.ref
					if !limited {
						own = append(own, name)
					}
				}
			}
			if len(route.names) > 0 {
				group.tlsRoutes = append(group.tlsRoutes, route)
			}
		}
	}
}

// passedOn returns the chains of connections whose TLS ends elsewhere. A route for
// a source takes its names only at gateways of that source.
func (c *writer) passedOn(listener *edgeListener, group *edgeGroup) []*ir.FilterChain {
	var out []*ir.FilterChain
	taken := map[*virtualService][]string{}
	for _, r := range group.tlsRoutes {
		names := slices.DeleteFunc(slices.Clone(r.names), func(name string) bool {
			return slices.ContainsFunc(taken[r.host.vs], func(wide string) bool { return covers(wide, name) })
		})
		if !c.fits(r.source) || len(names) == 0 {
			continue
		}
		if r.source != nil && len(r.match.GetDestinationSubnets()) == 0 {
			taken[r.host.vs] = append(taken[r.host.vs], names...)
		}
		port := tcpGatewayPort(listener.port)
		planned := c.domain.closedConnection(r.host.vs, nil, port)
		if r.match != nil {
			planned = c.domain.tlsRoute(r.host.vs, r.entry, r.match, nil, port)
		}
		c.needAll(planned.targets)
		route := planned.written(nil)
		route.ServerNames = nil
		out = append(out, &ir.FilterChain{
			ServerNames: serverNames(names),
			TCP:         &ir.TCPListener{Routes: []ir.TCPRoute{route}, AccessLog: c.plan.settings.AccessLogFile},
			Origins:     []diag.Ref{r.host.gw.ref, r.host.vs.ref},
		})
	}
	return out
}

// connections returns the TCP routes of the VirtualServices of a group. Routes
// after one for all connections are never used.
func (c *writer) connections(listener *edgeListener, group *edgeGroup) *ir.TCPListener {
	out := &ir.TCPListener{Mongo: group.mongo, AccessLog: c.plan.settings.AccessLogFile}
	port := tcpGatewayPort(listener.port)
	seen := map[*virtualService]bool{}
	for _, b := range group.bound {
		if seen[b.vs] {
			continue
		}
		seen[b.vs] = true
		if len(b.vs.spec.GetTcp()) > 0 && c.plan.connectionsWithheld(b.vs) {
			planned := c.domain.closedConnection(b.vs, nil, port)
			c.needAll(planned.targets)
			out.Routes = append(out.Routes, planned.written(nil))
			continue
		}
		for _, entry := range b.vs.spec.GetTcp() {
			for _, m := range l4Matches(entry) {
				source := ownSource(m.GetSourceLabels(), m.GetSourceNamespace())
				if !tcpMatches(m, port) || !group.serves(b.vs, m.GetGateways()) || !c.fits(source) {
					continue
				}
				planned := c.domain.tcpRoute(b.vs, entry, m, nil, port)
				c.needAll(planned.targets)
				out.Routes = append(out.Routes, planned.written(nil))
			}
		}
	}
	return out
}

// serves reports whether a match's list of gateways contains one through which the
// VirtualService is bound to the group.
func (g *edgeGroup) serves(vs *virtualService, gateways []string) bool {
	return slices.ContainsFunc(g.bound, func(b *boundHost) bool { return b.vs == vs && b.serves(gateways) })
}

// tcpGatewayPort is the port for destinations that name none.
func tcpGatewayPort(number int) *mesh.Port {
	return &mesh.Port{Name: "tcp", Number: number, Protocol: mesh.TCP}
}
