package compile

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
)

// outboundTCP has the listeners of a scope for ports whose requests are not routed
// one by one, and the clusters that they lead to.
type outboundTCP struct {
	listeners []*ir.Listener
	// beside has the TCP routes that come before HTTP at a port. These listeners
	// have no address.
	beside    []*ir.Listener
	byAddress map[ir.HostPort]*ir.Listener
	clusters  []*ir.Cluster // by name
	varies    bool          // whether callers see it differently
	problems  diag.List
}

// outboundTCP adds the listeners of the scope as this caller sees them. It returns
// their clusters.
func (c *writer) outboundTCP() []*ir.Cluster {
	tcp := c.plan.tcp.Get(c.plan.r, c.scope)
	if tcp.varies {
		tcp = c.plan.writeTCP(c.scope, c.caller, nil)
	} else {
		c.plan.problems.Add(tcp.problems...)
	}
	c.listeners, c.beside, c.tcp = append(c.listeners, tcp.listeners...), tcp.beside, tcp.byAddress
	return tcp.clusters
}

// writeTCP writes the listeners for one caller or, if who is nil, for the whole
// scope.
func (p *plan) writeTCP(s scope, who *caller, last *outboundTCP) *outboundTCP {
	c := p.writer(s, who)
	c.httpAt, c.tcp = map[int]*mesh.Service{}, map[ir.HostPort]*ir.Listener{}
	c.owners = p.addressesIn(s)
	for _, open := range p.openPortsIn(s) {
		c.httpAt[open.number] = open.first
	}
	if c.httpAt[undeclaredPort] == nil {
		if first := p.openedByRules(s); first != nil {
			c.httpAt[undeclaredPort] = first
		}
	}
	c.tcpPorts()
	out := &outboundTCP{byAddress: c.tcp, clusters: c.sortedClusters(), varies: c.varies, problems: p.problems.List()}
	for _, l := range c.listeners {
		if l = l.Renamed(c.renamed); l.IP == besideHTTP {
			out.beside = append(out.beside, l)
		} else {
			out.listeners = append(out.listeners, l)
		}
	}
	if last == nil {
		return out
	}
	out.listeners, out.beside = keep(out.listeners, last.listeners, nameOfListener), keep(out.beside, last.beside, nameOfListener)
	if sameList(out.listeners, last.listeners) && sameList(out.beside, last.beside) && slices.Equal(out.clusters, last.clusters) && out.varies == last.varies && sameProblems(out.problems, last.problems) {
		return last
	}
	return out
}

// tcpPorts writes listeners for every port that is neither HTTP nor UDP. A mesh
// service with an address has its own listener. All others share one listener per
// port, which routes by destination and server name.
func (c *writer) tcpPorts() {
	var shared []*ir.Listener
	parts := map[*ir.Listener]*tcpParts{}
	for _, svc := range wildcardsLast(c.plan.inOwnerOrder(c.plan.tcpServicesFor(c.scope))) {
		for _, port := range c.plan.portsFor(c.scope, svc) {
			if c.plan.routesHTTP(svc, port) || port.Protocol == mesh.UDP {
				continue
			}
			for _, at := range c.tcpAddresses(svc, port) {
				if l, isNew := c.tcpPort(svc, port, at, parts); isNew {
					shared = append(shared, l)
				}
			}
		}
	}
	for _, l := range shared {
		l.TCP.Routes = inOrder(append(c.namedAtBlocks(parts[l].blocks), parts[l].blocks...))
		c.passUnknown(l)
		c.listen(l)
	}
}

// wildcardsLast sorts services whose host is a wildcard after those that it covers.
func wildcardsLast(services []*mesh.Service) []*mesh.Service {
	length := func(svc *mesh.Service) int {
		if strings.HasPrefix(svc.Hostname, "*") {
			return -len(svc.Hostname)
		}
		return math.MinInt
	}
	return slices.SortedStableFunc(slices.Values(services), func(a, b *mesh.Service) int { return cmp.Compare(length(a), length(b)) })
}

// tcpBlock is the part of one service in the routes of a listener. Its last route
// takes the connections that the other routes do not.
type tcpBlock struct {
	at     servicePort
	routes []ir.TCPRoute
}

func (b tcpBlock) last() ir.TCPRoute { return b.routes[len(b.routes)-1] }

// width returns how many bits its destination fixes; -1 for any destination.
func (b tcpBlock) width() int {
	for _, d := range b.last().Destinations {
		if block, err := ir.ParseDestination(d); err == nil {
			return block.Bits()
		}
	}
	return -1
}

// inOrder sorts blocks so that none hides another: first those for narrower
// destinations, then those for any destination, and of these last the ones for any
// name.
func inOrder(blocks []tcpBlock) []ir.TCPRoute {
	slices.SortStableFunc(blocks, func(a, b tcpBlock) int {
		return cmp.Or(cmp.Compare(b.width(), a.width()), cmp.Compare(min(len(b.last().ServerNames), 1), min(len(a.last().ServerNames), 1)))
	})
	var out []ir.TCPRoute
	for _, b := range blocks {
		out = append(out, b.routes...)
	}
	return out
}

// tcpPort routes connections to a service port at one of its addresses. It returns
// the listener, which may be new. If the place is taken, it adds neither listener
// nor cluster.
func (c *writer) tcpPort(svc *mesh.Service, port *mesh.Port, address tcpAddress, parts map[*ir.Listener]*tcpParts) (l *ir.Listener, isNew bool) {
	destinations := address.destinations
	at := ir.HostPort{Host: address.ip, Port: port.Number}
	if at.Host == anyAddress && c.anyAddressTaken(svc, port, destinations) {
		return nil, false
	}
	l = c.tcp[at]
	if l != nil && !c.mayJoinTCP(l, parts[l], address, svc, port) {
		return l, false
	}
	isNew = l == nil
	if isNew {
		l = &ir.Listener{
			IP: at.Host, Port: at.Port, Direction: ir.Outbound,
			TCP: &ir.TCPListener{Mongo: port.Protocol == mesh.Mongo},
		}
		c.tcp[at], parts[l] = l, newTCPParts()
	}
	if ref := svc.Origin.Ref(); !parts[l].origins[ref] {
		parts[l].origins[ref] = true
		l.Origins = append(l.Origins, ref)
	}
	routes := c.tcpRoutes(svc, port, destinations)
	parts[l].add(tcpBlock{servicePort{svc, port}, routes})
	for _, r := range routes {
		for _, ref := range c.settingConnections(r) {
			if !parts[l].origins[ref] {
				parts[l].origins[ref] = true
				l.Origins = append(l.Origins, ref)
			}
		}
	}
	return l, isNew
}

// settingConnections returns the objects that set how a route keeps or spreads connections.
func (c *writer) settingConnections(r ir.TCPRoute) []diag.Ref {
	if r.Stream.IdleTimeout == nil && r.Stream.MaxDuration == 0 && !r.HashSource {
		return nil
	}
	return c.added[r.Clusters[0].Name].cluster.Origins
}

// tcpRoutes returns routes that send connections for the destinations to the
// service, or where its VirtualService wants them, and adds their clusters.
func (c *writer) tcpRoutes(svc *mesh.Service, port *mesh.Port, destinations []string) []ir.TCPRoute {
	var out []ir.TCPRoute
	names := namesFor(svc, port, destinations)
	var byName []diag.Ref // the VirtualService, once a TLS match applies to this caller
	for _, planned := range c.domain.tcpRoutesTo(svc, port) {
		if !c.fits(planned.source) || byName != nil && !planned.byName {
			continue
		}
		if planned.byName {
			byName = []diag.Ref{planned.origin}
			all := len(planned.names)
			if planned = c.withOwnNames(planned, svc, port, destinations); len(planned.names) == 0 && all > 0 {
				continue
			}
		}
		c.needAll(planned.targets)
		route := c.tcpRoute(planned.written(destinations))
		whole := slices.Equal(route.Destinations, destinations) && coversNames(route.ServerNames, names)
		route.Assumed = whole && len(route.ServerNames) > 0
		if out = append(out, route); whole {
			return out
		}
	}
	rest := ir.TCPRoute{Destinations: destinations, ServerNames: names, Assumed: len(names) > 0, Clusters: ir.Whole(ir.Nobody), Origins: byName}
	if byName != nil {
		// As in Istio, the service has no default route besides its TLS matches: a
		// client could bypass them with another server name, or with none.
		c.put(blackHole)
		return append(out, rest)
	}
	to := c.plan.newTarget(svc, port, nil)
	c.addCluster(to)
	rest.Clusters = ir.Whole(to.name)
	return append(out, c.tcpRoute(rest))
}

// tcpRoute completes a route whose clusters exist. Its first cluster decides the
// connection settings.
func (c *writer) tcpRoute(r ir.TCPRoute) ir.TCPRoute {
	first := r.Clusters[0].Name
	key, _ := c.hashKey(first)
	r.Stream, r.HashSource = c.added[first].stream, key.Source
	return r
}

// coversNames reports whether a covers everything that names cover.
func coversNames(a, names []string) bool {
	return len(a) == 0 || len(names) > 0 && !slices.ContainsFunc(names, func(name string) bool {
		return !slices.ContainsFunc(a, func(wide string) bool { return covers(wide, name) })
	})
}

// covers reports whether a name or wildcard covers everything that another one
// covers.
func covers(wide, name string) bool {
	ending, wildcard := strings.CutPrefix(wide, "*")
	return wide == name || wildcard && strings.HasSuffix(strings.TrimPrefix(name, "*"), ending)
}

// namesFor returns the server names that distinguish connections for a service from
// others to the same port; none if the destination does.
func namesFor(svc *mesh.Service, port *mesh.Port, destinations []string) []string {
	if len(destinations) > 0 || !readsNames(port) {
		return nil
	}
	return serverNames([]string{svc.Hostname})
}

// tcpAddress is where to listen for a service, and which destinations to accept
// there; none means any.
type tcpAddress struct {
	ip           string
	destinations []string
	// named is set if named services get the connections for their names here too.
	named bool
}

// besideHTTP replaces the address of routes that come before HTTP at a port.
const besideHTTP = ""

// tcpAddresses returns the addresses of a service port, without those that other
// services own. A mesh service has its own listener, and so has another service at
// a port that HTTP uses. Routers listen at no service address, as no traffic is
// captured for them.
func (c *writer) tcpAddresses(svc *mesh.Service, port *mesh.Port) []tcpAddress {
	blocks := declaredBlocks(svc)
	if len(blocks) == 0 || c.scope.role == mesh.Router {
		return []tcpAddress{{ip: anyAddress}}
	}
	alone := !svc.External || c.httpAt[port.Number] != nil && !c.plan.pilot().TCPTakesHTTPPort
	named := len(c.plan.namedBefore(c.owners.named[port.Number], svc)) > 0
	var out []tcpAddress
	for _, block := range blocks {
		at := tcpAddress{ip: anyAddress, destinations: []string{block.String()}, named: named}
		claim := placed{servicePort{svc, port}, block}
		if lost, is := c.owners.lost[claim]; is {
			c.reportLostAddress(claim, lost)
			continue
		}
		switch {
		case c.owners.beside[claim] && c.scope.bindsAt(port.Number) == "" && port.Number != c.plan.settings.ProxyListenPort:
			at.ip = besideHTTP
		case block.IsSingleIP() && alone && !named:
			at.ip = block.Addr().String()
		}
		out = append(out, at)
	}
	if named {
		c.reportNamed(svc, port)
	}
	return out
}

// anyAddressTaken reports whether HTTP or the proxy itself uses the port.
func (c *writer) anyAddressTaken(svc *mesh.Service, port *mesh.Port, destinations []string) bool {
	if c.scope.role == mesh.Router {
		return false
	}
	if port.Number == c.plan.settings.ProxyListenPort {
		c.reportOwnPort(svc.Origin.Ref(), port.Number)
		return true
	}
	first := c.httpAt[port.Number]
	if first == nil || c.plan.pilot().TCPTakesHTTPPort {
		return false
	}
	c.reportTCP(svc, port, destinations, fmt.Sprintf("HTTP services, such as %s, use the port", first.Hostname))
	return true
}

// mayJoinTCP reports whether a listener has room for another service.
func (c *writer) mayJoinTCP(l *ir.Listener, parts *tcpParts, address tcpAddress, svc *mesh.Service, port *mesh.Port) bool {
	destinations := address.destinations
	names := namesFor(svc, port, destinations)
	taken, isTaken := parts.takenBy[takenKey(destinations, names)]
	switch {
	case isTaken:
		c.reportTCP(svc, port, destinations, fmt.Sprintf("connections for the same destination go to %s", taken.last().Clusters[0].Name))
		return false
	case l.TCP.Mongo != (port.Protocol == mesh.Mongo) && !address.named: // With named, other protocols may join.
		c.reportTCP(svc, port, destinations, fmt.Sprintf("%s uses the port with another protocol", l.Origins[0]))
		return false
	}
	return true
}
