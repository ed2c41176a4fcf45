package compile

import (
	"net/http"
	"slices"

	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
)

// blockAll is the virtual host for all unknown hosts, with Istio's name. The other one,
// allow_any, has the route passOn.
var (
	passOn   = &ir.Route{Clusters: []ir.WeightedCluster{{Name: ir.Passthrough, Weight: ir.WholeWeight}}}
	blockAll = &ir.VirtualHost{Name: "block_all", Domains: []string{"*"}, Routes: []*ir.Route{{
		Response: &ir.DirectResponse{Status: http.StatusBadGateway},
	}}}
	blackHole = (&ir.Cluster{Name: ir.Nobody}).Closed()
)

// passthrough is the cluster for undeclared destinations. It connects to the
// original destination.
func passthrough(s *mesh.Settings) *ir.Cluster {
	return &ir.Cluster{Name: ir.Passthrough, Type: ir.OriginalDestination, ConnectTimeout: s.ConnectTimeout}
}

// treatsUnknown returns how proxies of a scope treat unknown destinations, or "" if
// they have no captured traffic.
func (rd *reader) treatsUnknown(s scope) mesh.OutboundMode {
	if s.role != mesh.Sidecar || rd.settings.ProxyListenPort == 0 || rd.pilot().UnknownDestinationsClosed {
		return ""
	}
	if s.sidecar != nil && s.sidecar.unknown != "" {
		return s.sidecar.unknown
	}
	return rd.settings.OutboundTrafficPolicy
}

// closedPorts returns the ports at which proxies of a scope do not pass on unknown
// destinations.
func (rd *reader) closedPorts(s scope) []int {
	services := rd.registry.closedPorts.Get(rd.r, none{}).In(mesh.NamespaceOf(s.domain, rd.settings.Domain))
	egress := rd.egress.Get(rd.r, none{}).closed
	if len(egress) == 0 {
		return services
	}
	out := slices.Concat(services, egress)
	slices.Sort(out)
	return slices.Compact(out)
}

// unknownHost returns nil if every host is known.
func (rd *reader) unknownHost(s scope, t *tableLayout) *ir.VirtualHost {
	for _, e := range t.entries {
		if slices.Contains(e.domains, "*") {
			return nil
		}
	}
	return rd.unknownAt(s, t.port)
}

// unknownAt returns the virtual host for the hosts that proxies of a scope do not
// know at a port, or nil.
func (rd *reader) unknownAt(s scope, port int) *ir.VirtualHost {
	switch rd.treatsUnknown(s) {
	case mesh.AllowAny:
		if s.bindsAt(port) != "" || slices.Contains(rd.closedPorts(s), port) || rd.refusesUndeclaredAt(s, port) {
			return blockAll // Traffic that is not captured has no other destination, and captured traffic is not allowed.
		}
		allowAny := &ir.VirtualHost{Name: "allow_any", Domains: []string{"*"}, Routes: []*ir.Route{passOn}}
		if !rd.pilot().HostsAsWritten {
			allowAny.Port = port
		}
		return allowAny
	case mesh.RegistryOnly:
		return blockAll
	}
	return nil
}

// unknownConnections handles connections to ports without a listener. A connection
// that was not redirected was meant for the proxy, which must not call itself.
func (c *writer) unknownConnections() *ir.TCPListener {
	switch c.plan.treatsUnknown(c.scope) {
	case mesh.AllowAny:
		var routes []ir.TCPRoute
		for _, port := range c.plan.closedPorts(c.scope) {
			if port != c.plan.settings.ProxyListenPort {
				routes = append(routes, ir.TCPRoute{Port: port, Clusters: ir.Whole(ir.Nobody)})
			}
		}
		return &ir.TCPListener{Routes: append(routes,
			ir.TCPRoute{Port: c.plan.settings.ProxyListenPort, Clusters: ir.Whole(ir.Nobody)},
			ir.TCPRoute{Clusters: ir.Whole(ir.Passthrough)},
		)}
	case mesh.RegistryOnly:
		return &ir.TCPListener{Routes: []ir.TCPRoute{{Clusters: ir.Whole(ir.Nobody)}}}
	}
	return nil
}

// passUnknown passes on connections to other destinations, and for other names, at
// a port of which only some are known.
func (c *writer) passUnknown(l *ir.Listener) {
	last := l.TCP.Routes[len(l.TCP.Routes)-1]
	if l.IP != anyAddress || len(last.Destinations)+len(last.ServerNames) == 0 || c.plan.treatsUnknown(c.scope) != mesh.AllowAny ||
		slices.Contains(c.plan.closedPorts(c.scope), l.Port) {
		return
	}
	l.TCP.Routes = append(l.TCP.Routes, ir.TCPRoute{Clusters: ir.Whole(ir.Passthrough)})
}

// needUnknown adds the clusters for unknown destinations.
func (c *writer) needUnknown() {
	switch c.plan.treatsUnknown(c.scope) {
	case mesh.AllowAny:
		c.put(c.plan.passthrough)
		c.put(blackHole)
	case mesh.RegistryOnly:
		c.put(blackHole)
	}
}
