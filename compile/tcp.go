package compile

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
)

// outboundTCP are the listeners of a scope for ports whose requests are not
// routed one by one, and the clusters that they lead to.
type outboundTCP struct {
	listeners []*ir.Listener
	byAddress map[ir.HostPort]*ir.Listener
	clusters  []*ir.Cluster // by name
	varies    bool          // from one caller to the next
	problems  diag.List
}

// outboundTCP takes in the listeners of the scope as this caller sees them. The
// clusters are those that they lead to.
func (c *writer) outboundTCP() []*ir.Cluster {
	tcp := c.plan.tcp.Get(c.plan.r, c.scope)
	if tcp.varies {
		tcp = c.plan.writeTCP(c.scope, c.caller, nil)
	} else {
		c.plan.problems.Add(tcp.problems...)
	}
	c.listeners, c.tcp = append(c.listeners, tcp.listeners...), tcp.byAddress
	return tcp.clusters
}

// writeTCP is for one caller, or without one for all of the scope.
func (p *plan) writeTCP(s scope, who *caller, last *outboundTCP) *outboundTCP {
	c := p.writer(s, who)
	c.tables = map[int]*tableLayout{}
	for _, t := range p.layouts.Get(p.r, s).tables {
		c.tables[t.port] = t
	}
	c.tcpPorts()
	out := &outboundTCP{byAddress: c.tcp, clusters: c.sortedClusters(), varies: c.varies, problems: p.problems.List()}
	for _, l := range c.listeners {
		out.listeners = append(out.listeners, l.Renamed(c.renamed))
	}
	if last == nil {
		return out
	}
	out.listeners = keep(out.listeners, last.listeners, (*ir.Listener).Address)
	if sameList(out.listeners, last.listeners) && slices.Equal(out.clusters, last.clusters) && out.varies == last.varies && sameProblems(out.problems, last.problems) {
		return last
	}
	return out
}

// tcpPorts listens for every port that is neither HTTP nor UDP. A mesh
// service with an address has a listener of its own; all others share one for
// each port, in which the destination decides.
func (c *writer) tcpPorts() {
	var shared []*ir.Listener
	for _, svc := range c.plan.servicesFor(c.scope) {
		for _, port := range svc.Ports {
			if c.plan.routesHTTP(svc, port) || port.Protocol == mesh.UDP {
				continue
			}
			if l := c.tcpPort(svc, port); l != nil {
				shared = append(shared, l)
			}
		}
	}
	for _, l := range shared {
		catchAllLast(l.TCP.Routes)
		c.passUnknown(l)
		c.listen(l)
	}
}

// tcpPort routes connections to a service port, and returns the listener when
// it is a new one. A port that finds its place taken gets neither listener nor
// cluster.
func (c *writer) tcpPort(svc *mesh.Service, port *mesh.Port) *ir.Listener {
	host, destinations := c.tcpAddress(svc)
	at := ir.HostPort{Host: host, Port: port.Number}
	if at.Host == anyAddress && c.anyAddressTaken(svc, port) {
		return nil
	}
	l := c.tcp[at]
	if l == nil {
		l = &ir.Listener{
			IP: at.Host, Port: at.Port, Direction: ir.Outbound,
			TCP:     &ir.TCPListener{Mongo: port.Protocol == mesh.Mongo},
			Origins: []diag.Ref{svc.Origin.Ref()},
		}
		c.tcp[at] = l
		l.TCP.Routes = c.tcpRoutes(svc, port, destinations)
		return l
	}
	if c.mayJoinTCP(l, destinations, svc, port) {
		l.TCP.Routes = append(l.TCP.Routes, c.tcpRoutes(svc, port, destinations)...)
		l.Origins = append(l.Origins, svc.Origin.Ref())
	}
	return nil
}

// tcpRoutes send connections for the destinations to the service, or to where
// its VirtualService wants them, and make sure of the clusters.
func (c *writer) tcpRoutes(svc *mesh.Service, port *mesh.Port, destinations []string) []ir.TCPRoute {
	var out []ir.TCPRoute
	for _, planned := range c.domain.tcpRoutesTo(svc, port) {
		if !c.fits(planned.source) {
			continue
		}
		c.addCluster(planned.to)
		if len(planned.destinations) == 0 || slices.Equal(planned.destinations, destinations) {
			return append(out, c.tcpRoute(destinations, planned.to))
		}
		out = append(out, c.tcpRoute(planned.destinations, planned.to))
	}
	to := c.plan.newTarget(svc, port, nil)
	c.addCluster(to)
	return append(out, c.tcpRoute(destinations, to))
}

// tcpRoute leads to a cluster that is there.
func (c *writer) tcpRoute(destinations []string, to target) ir.TCPRoute {
	return ir.TCPRoute{Destinations: destinations, Cluster: to.name, Stream: c.streams[to.name], HashSource: c.hashes[to.name].Source}
}

// tcpAddress is where to listen for a service and what destinations to take
// there; none means any. Routers have no traffic captured for them, so no
// service address to listen at.
func (c *writer) tcpAddress(svc *mesh.Service) (ip string, destinations []string) {
	if c.scope.role == mesh.Router {
		return anyAddress, nil
	}
	address := svc.Address
	if address == "" && svc.External {
		address = svc.Hostname
	}
	if block, err := netip.ParsePrefix(address); err == nil {
		return anyAddress, []string{block.String()}
	}
	addr, err := netip.ParseAddr(address)
	if err != nil {
		return anyAddress, nil
	}
	block := netip.PrefixFrom(addr, addr.BitLen()).String()
	if svc.External {
		return anyAddress, []string{block}
	}
	return addr.String(), []string{block}
}

// anyAddressTaken reports whether HTTP or the proxy itself has the port.
func (c *writer) anyAddressTaken(svc *mesh.Service, port *mesh.Port) bool {
	if c.scope.role == mesh.Router {
		return false
	}
	if port.Number == c.plan.settings.ProxyListenPort {
		c.reportOwnPort(svc.Origin.Ref(), port.Number)
		return true
	}
	t := c.tables[port.Number]
	if t == nil || c.plan.pilot().TCPTakesHTTPPort {
		return false
	}
	c.reportTCP(svc, port, fmt.Sprintf("HTTP services, such as %s, use the port", t.first.Hostname))
	return true
}

// mayJoinTCP reports whether a listener has room for a further service.
func (c *writer) mayJoinTCP(l *ir.Listener, destinations []string, svc *mesh.Service, port *mesh.Port) bool {
	taken := slices.IndexFunc(l.TCP.Routes, func(r ir.TCPRoute) bool {
		return slices.Equal(r.Destinations, destinations)
	})
	switch {
	case taken >= 0:
		c.reportTCP(svc, port, fmt.Sprintf("connections for the same destination go to %s", l.TCP.Routes[taken].Cluster))
		return false
	case l.TCP.Mongo != (port.Protocol == mesh.Mongo):
		c.reportTCP(svc, port, fmt.Sprintf("%s uses the port with another protocol", l.Origins[0]))
		return false
	}
	return true
}

// catchAllLast moves the one route without destinations behind the others,
// which it would hide.
func catchAllLast(routes []ir.TCPRoute) {
	slices.SortStableFunc(routes, func(a, b ir.TCPRoute) int {
		return cmp.Compare(min(1, len(b.Destinations)), min(1, len(a.Destinations)))
	})
}
