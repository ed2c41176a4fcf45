package compile

import (
	"net/http"
	"slices"

	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
)

// blockAll is one virtual host for what no other is for, under Istio's name; its
// other one, allow_any, has the route passOn.
var (
	passOn   = &ir.Route{Clusters: []ir.WeightedCluster{{Name: ir.Passthrough, Weight: ir.WholeWeight}}}
	blockAll = &ir.VirtualHost{Name: "block_all", Domains: []string{"*"}, Routes: []*ir.Route{{
		Response: &ir.DirectResponse{Status: http.StatusBadGateway},
	}}}
	blackHole = (&ir.Cluster{Name: ir.Nobody}).Closed()
)

// passthrough is where what nobody declared was going.
func passthrough(s *mesh.Settings) *ir.Cluster {
	return &ir.Cluster{Name: ir.Passthrough, Type: ir.OriginalDestination, ConnectTimeout: s.ConnectTimeout}
}

// treatsUnknown is how proxies of a scope treat what they do not know; "" for
// those that have no part in it, as nothing is captured for them.
func (p *plan) treatsUnknown(s scope) mesh.OutboundMode {
	if s.role != mesh.Sidecar || p.settings.ProxyListenPort == 0 || p.pilot().UnknownDestinationsClosed {
		return ""
	}
	if s.sidecar != nil && s.sidecar.unknown != "" {
		return s.sidecar.unknown
	}
	return p.settings.OutboundTrafficPolicy
}

// closedPorts are those at which proxies of a scope pass on nothing that they do not
// know.
func (p *plan) closedPorts(s scope) []int {
	services := p.registry.closedPorts.Get(p.r, none{}).In(mesh.NamespaceOf(s.domain, p.settings.Domain))
	egress := p.egress.Get(p.r, none{}).closed
	if len(egress) == 0 {
		return services
	}
	out := slices.Concat(services, egress)
	slices.Sort(out)
	return slices.Compact(out)
}

// unknownHost is nil where every host is known.
func (p *plan) unknownHost(s scope, t *tableLayout) *ir.VirtualHost {
	for _, e := range t.entries {
		if slices.Contains(e.domains, "*") {
			return nil
		}
	}
	return p.unknownAt(s, t.port)
}

// unknownAt is what becomes of the hosts that proxies of a scope do not know at a
// port; nil if no virtual host is for them.
func (p *plan) unknownAt(s scope, port int) *ir.VirtualHost {
	switch p.treatsUnknown(s) {
	case mesh.AllowAny:
		if s.bindsAt(port) != "" || slices.Contains(p.closedPorts(s), port) || p.refusesUndeclaredAt(s, port) {
			return blockAll // What is not captured was going nowhere else, and what is may not.
		}
		allowAny := &ir.VirtualHost{Name: "allow_any", Domains: []string{"*"}, Routes: []*ir.Route{passOn}}
		if !p.pilot().HostsAsWritten {
			allowAny.Port = port
		}
		return allowAny
	case mesh.RegistryOnly:
		return blockAll
	}
	return nil
}

// unknownConnections are those to ports that no listener is for. A connection
// that nobody redirected was going to the proxy, which must not call itself.
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

// passUnknown has connections to other destinations, and for other names, go on,
// at a port of which only some are known.
func (c *writer) passUnknown(l *ir.Listener) {
	last := l.TCP.Routes[len(l.TCP.Routes)-1]
	if l.IP != anyAddress || len(last.Destinations)+len(last.ServerNames) == 0 || c.plan.treatsUnknown(c.scope) != mesh.AllowAny ||
		slices.Contains(c.plan.closedPorts(c.scope), l.Port) {
		return
	}
	l.TCP.Routes = append(l.TCP.Routes, ir.TCPRoute{Clusters: ir.Whole(ir.Passthrough)})
}

// needUnknown makes sure of the clusters.
func (c *writer) needUnknown() {
	switch c.plan.treatsUnknown(c.scope) {
	case mesh.AllowAny:
		c.put(c.plan.passthrough)
		c.put(blackHole)
	case mesh.RegistryOnly:
		c.put(blackHole)
	}
}
