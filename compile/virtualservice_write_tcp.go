package compile

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
)

// plannedTCP is a route for connections from callers of one source.
type plannedTCP struct {
	source       *source
	destinations []string // blocks; empty for any
	names        []string // server names; empty for any
	byName       bool     // from a TLS match, not a TCP one
	targets      []target
	weights      []int
	origin       diag.Ref
}

// tcpRoutes returns the routes of a VirtualService for connections to one port of a
// service.
func (v *viewpoint) tcpRoutes(vs *virtualService, svc *mesh.Service, port *mesh.Port) []plannedTCP {
	if v.connectionsWithheld(vs) {
		return v.closedConnections(vs, svc, port)
	}
	var out []plannedTCP
	if readsNames(port) {
		for _, entry := range vs.spec.GetTls() {
			for _, m := range entry.GetMatch() {
				if tlsMatches(m, port) && vs.serves(m.GetGateways(), meshGateway) {
					out = append(out, v.tlsRoute(vs, entry, m, svc, port))
				}
			}
		}
	}
	for _, entry := range vs.spec.GetTcp() {
		for _, m := range l4Matches(entry) {
			if tcpMatches(m, port) && vs.serves(m.GetGateways(), meshGateway) {
				out = append(out, v.tcpRoute(vs, entry, m, svc, port))
			}
		}
	}
	return out
}

// closedConnections returns the routes of a withheld VirtualService for
// connections.
func (v *viewpoint) closedConnections(vs *virtualService, svc *mesh.Service, port *mesh.Port) []plannedTCP {
	if len(vs.spec.GetTcp()) == 0 && (len(vs.spec.GetTls()) == 0 || !readsNames(port)) {
		return nil
	}
	return []plannedTCP{v.closedConnection(vs, svc, port)}
}

// closedConnection returns a route that fails all connections; own is nil at a
// gateway.
func (v *viewpoint) closedConnection(vs *virtualService, own *mesh.Service, port *mesh.Port) plannedTCP {
	out := plannedTCP{origin: vs.ref}
	v.closeTCP(&out, vs, own, port)
	return out
}

// readsNames reports whether clients of the port start TLS, and so send a server
// name.
func readsNames(port *mesh.Port) bool {
	return port.Protocol == mesh.HTTPS || port.Protocol == mesh.TLS
}

// l4Matches returns the matches of a route; a single nil matches any connection.
func l4Matches(entry *networking.TCPRoute) []*networking.L4MatchAttributes {
	if len(entry.GetMatch()) == 0 {
		return []*networking.L4MatchAttributes{nil}
	}
	return entry.GetMatch()
}

func tcpMatches(m *networking.L4MatchAttributes, port *mesh.Port) bool {
	return m.GetPort() == 0 || int(m.GetPort()) == port.Number
}

func tlsMatches(m *networking.TLSMatchAttributes, port *mesh.Port) bool {
	return m.GetPort() == 0 || int(m.GetPort()) == port.Number
}

// tlsRoute returns the route for one match; own is nil at a gateway.
func (v *viewpoint) tlsRoute(vs *virtualService, entry *networking.TLSRoute, m *networking.TLSMatchAttributes, own *mesh.Service, port *mesh.Port) plannedTCP {
	out := plannedTCP{
		source: ownSource(m.GetSourceLabels(), m.GetSourceNamespace()), names: serverNames(m.GetSniHosts()), byName: true, origin: vs.ref,
	}
	v.fill(&out, vs, entry.GetRoute(), m.GetDestinationSubnets(), own, port)
	return out
}

// tcpRoute returns the route for one match; own is nil at a gateway.
func (v *viewpoint) tcpRoute(vs *virtualService, entry *networking.TCPRoute, m *networking.L4MatchAttributes, own *mesh.Service, port *mesh.Port) plannedTCP {
	out := plannedTCP{source: ownSource(m.GetSourceLabels(), m.GetSourceNamespace()), origin: vs.ref}
	v.fill(&out, vs, entry.GetRoute(), m.GetDestinationSubnets(), own, port)
	if m.GetSourceSubnet() != "" {
		v.closeTCP(&out, vs, own, port)
	}
	return out
}

// fill sets the destinations of the connections. If a subnet is invalid, the
// matching connections are unknown, so all that may match are closed.
func (v *viewpoint) fill(out *plannedTCP, vs *virtualService, route []*networking.RouteDestination, subnets []string, own *mesh.Service, port *mesh.Port) {
	var weights []int32
	for _, to := range route {
		weights = append(weights, to.GetWeight())
		out.targets = append(out.targets, v.target(vs, to.GetDestination(), own, port))
	}
	out.weights = shares(weights)
	blocks, err := blocksOf(subnets)
	out.destinations = blocks
	if err != nil || out.weights == nil {
		v.closeTCP(out, vs, own, port)
	}
}

func (v *viewpoint) closeTCP(out *plannedTCP, vs *virtualService, own *mesh.Service, port *mesh.Port) {
	host := vs.ref.Name + "." + v.homeOf(vs.ref.Namespace)
	if own != nil {
		host = own.Hostname
	}
	out.targets = []target{v.blackhole(host, port, nil, vs.ref)}
	out.weights = []int{ir.WholeWeight}
}

// serverNames returns server names for the IR: the bare wildcard is no condition.
func serverNames(hosts []string) []string {
	if slices.Contains(hosts, "*") {
		return nil
	}
	var out []string
	for _, host := range hosts {
		out = append(out, strings.ToLower(host))
	}
	return out
}

// blocksOf returns subnets as CIDR blocks, or an error if any is invalid.
func blocksOf(subnets []string) ([]string, error) {
	var out []string
	for _, subnet := range subnets {
		if addr, err := netip.ParseAddr(subnet); err == nil {
			subnet = netip.PrefixFrom(addr, addr.BitLen()).String()
		}
		if _, err := ir.ParseDestination(subnet); err != nil {
			return nil, err
		}
		out = append(out, subnet)
	}
	return out, nil
}

// written returns the route in the IR, for connections to any of the blocks unless
// it has narrower ones.
func (planned plannedTCP) written(within []string) ir.TCPRoute {
	out := ir.TCPRoute{Destinations: planned.destinations, ServerNames: planned.names, Origins: []diag.Ref{planned.origin}}
	if len(out.Destinations) == 0 {
		out.Destinations = within
	}
	for i, t := range planned.targets {
		out.Clusters = append(out.Clusters, ir.WeightedCluster{Name: t.name, Weight: planned.weights[i]})
	}
	return out
}

// checkTCPRoutes reports problems of the routes for connections, as proxies in the
// same namespace see them.
func (d *check) checkTCPRoutes(vs *virtualService) {
	for i, entry := range vs.spec.GetTls() {
		at := fmt.Sprintf("spec.tls[%d]", i)
		for j, m := range entry.GetMatch() {
			d.checkSubnets(vs.ref, fmt.Sprintf("%s.match[%d]", at, j), m.GetDestinationSubnets())
		}
		d.checkConnections(vs, at, entry.GetRoute())
	}
	for i, entry := range vs.spec.GetTcp() {
		at := fmt.Sprintf("spec.tcp[%d]", i)
		for j, m := range entry.GetMatch() {
			d.checkSubnets(vs.ref, fmt.Sprintf("%s.match[%d]", at, j), m.GetDestinationSubnets())
		}
		d.checkConnections(vs, at, entry.GetRoute())
	}
}

func (d *check) checkSubnets(ref diag.Ref, at string, subnets []string) {
	if _, err := blocksOf(subnets); err != nil {
		d.notHonoured(diag.Closed, ref, at+".destinationSubnets", "connections for the port fail: "+err.Error())
	}
}

func (d *check) checkConnections(vs *virtualService, at string, route []*networking.RouteDestination) {
	for i, to := range route {
		d.checkTarget(vs, fmt.Sprintf("%s.route[%d].destination", at, i), to.GetDestination())
	}
	if len(route) > 1 && !slices.ContainsFunc(route, func(to *networking.RouteDestination) bool { return to.GetWeight() > 0 }) {
		d.notHonoured(diag.Closed, vs.ref, at+".route", "connections fail: no destination has a weight")
	}
}
