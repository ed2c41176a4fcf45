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

// outboundTCP listens for every port that is neither HTTP nor UDP. A mesh
// service with an address has a listener of its own; all others share one for
// each port, in which the destination decides.
func (c *compiler) outboundTCP() {
	var shared []*ir.Listener
	for _, svc := range c.services() {
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
		c.listen(l)
	}
}

// tcpPort routes connections to a service port, and returns the listener when
// it is a new one. A port that finds its place taken gets neither listener nor
// cluster.
func (c *compiler) tcpPort(svc *mesh.Service, port *mesh.Port) *ir.Listener {
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
func (c *compiler) tcpRoutes(svc *mesh.Service, port *mesh.Port, destinations []string) []ir.TCPRoute {
	var out []ir.TCPRoute
	for _, planned := range c.domain.tcpRoutesTo(svc, port) {
		if !planned.source.fits(c.view.Instances) {
			continue
		}
		c.addCluster(planned.to)
		if len(planned.destinations) == 0 || slices.Equal(planned.destinations, destinations) {
			return append(out, ir.TCPRoute{Destinations: destinations, Cluster: planned.to.cluster.Name})
		}
		out = append(out, ir.TCPRoute{Destinations: planned.destinations, Cluster: planned.to.cluster.Name})
	}
	to := c.plan.newTarget(svc, port, nil)
	c.addCluster(to)
	return append(out, ir.TCPRoute{Destinations: destinations, Cluster: to.cluster.Name})
}

// tcpAddress is where to listen for a service and what destinations to take
// there; none means any. Routers have no traffic captured for them, so no
// service address to listen at.
func (c *compiler) tcpAddress(svc *mesh.Service) (ip string, destinations []string) {
	if c.view.Role == mesh.Router {
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
func (c *compiler) anyAddressTaken(svc *mesh.Service, port *mesh.Port) bool {
	if c.view.Role == mesh.Router {
		return false
	}
	if port.Number == c.snap.Settings.ProxyListenPort {
		c.reportOwnPort(svc.Origin.Ref(), port.Number)
		return true
	}
	t := c.tables[port.Number]
	if t == nil || c.plan.pilot().TCPTakesHTTPPort {
		return false
	}
	c.reportTCP(svc, port, fmt.Sprintf("HTTP services, such as %s, use the port", t.hosts[0].service.Hostname))
	return true
}

// mayJoinTCP reports whether a listener has room for a further service.
func (c *compiler) mayJoinTCP(l *ir.Listener, destinations []string, svc *mesh.Service, port *mesh.Port) bool {
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
