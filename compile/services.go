package compile

import (
	"maps"
	"slices"
	"strconv"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
)

// outboundHTTP fills the table of every port that HTTP services listen on.
func (c *compiler) outboundHTTP() {
	for _, svc := range c.services() {
		for _, port := range svc.Ports {
			if c.plan.routesHTTP(svc, port) {
				c.table(port.Number).add(c.virtualHost(svc, port))
			}
		}
	}
	for _, port := range slices.Sorted(maps.Keys(c.tables)) {
		c.problems.Add(c.tables[port].claimDomains()...)
	}
}

// services that this proxy may call. Routers do not follow EgressRules.
func (c *compiler) services() []*mesh.Service {
	var out []*mesh.Service
	for _, svc := range c.snap.Services {
		if svc.VisibleIn(c.domain.namespace) {
			out = append(out, svc)
		}
	}
	if c.view.Role == mesh.Router {
		return out
	}
	return append(out, c.plan.egress...)
}

func (c *compiler) table(port int) *table {
	if c.tables[port] == nil {
		c.tables[port] = &table{port: port}
	}
	return c.tables[port]
}

// virtualHost is one service port: the routes that callers beside this proxy
// see.
func (c *compiler) virtualHost(svc *mesh.Service, port *mesh.Port) *candidate {
	host := newCandidate(svc, port, c.view.Domain)
	for _, planned := range visibleTo(c.view.Instances, c.domain.routesTo(svc, port)) {
		c.needAll(planned.targets)
		host.Routes = append(host.Routes, planned.route)
	}
	return host
}

// visibleTo are the routes for callers among the own instances, up to the
// object of which one takes every request. Pilot wrote all routes of an object.
func visibleTo(own []*mesh.Instance, all []plannedRoute) []plannedRoute {
	var out []plannedRoute
	var last diag.Ref
	for _, planned := range all {
		object := planned.route.Origins[0]
		switch {
		case last != (diag.Ref{}) && object != last:
			return out
		case !planned.source.fits(own):
			continue
		case planned.route.Match.CatchAll():
			last = object
		}
		out = append(out, planned)
	}
	return out
}

// visibleAtEdge are the routes for callers from outside.
func visibleAtEdge(all []plannedRoute) []plannedRoute {
	return visibleTo(nil, slices.DeleteFunc(slices.Clone(all), func(planned plannedRoute) bool { return planned.sidecarOnly }))
}

// portTables publishes the table of every port.
func (c *compiler) portTables() {
	for _, port := range slices.Sorted(maps.Keys(c.tables)) {
		c.config.RouteTables = append(c.config.RouteTables,
			&ir.RouteTable{Name: strconv.Itoa(port), VirtualHosts: c.tables[port].virtualHosts()})
	}
}

// httpListeners takes the traffic for each table, whatever address it was
// going to.
func (c *compiler) httpListeners() {
	for _, port := range slices.Sorted(maps.Keys(c.tables)) {
		t := c.tables[port]
		if port == c.snap.Settings.ProxyListenPort {
			c.reportOwnPort(t.origins()[0], port)
			continue
		}
		if l := c.tcp[ir.HostPort{Host: anyAddress, Port: port}]; l != nil {
			c.reportHTTPLost(l, t)
		}
		c.listen(&ir.Listener{
			IP: anyAddress, Port: port, Direction: ir.Outbound,
			HTTP:    c.http(strconv.Itoa(port)),
			Origins: t.origins(),
		})
	}
}

// http is the part that all HTTP listeners have in common.
func (c *compiler) http(table string) *ir.HTTPListener {
	return &ir.HTTPListener{
		Table:     table,
		Tracing:   c.snap.Settings.EnableTracing,
		AccessLog: c.snap.Settings.AccessLogFile,
	}
}
