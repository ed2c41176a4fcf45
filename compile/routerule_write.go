package compile

import (
	"slices"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// plannedRoute is a route for callers of one source.
type plannedRoute struct {
	source      *source // nil for any caller
	sidecarOnly bool    // for sidecars only
	// picksUpgrades is set if a connection may be upgraded only if this route, or
	// one like it, allows that.
	picksUpgrades bool
	// rule numbers the objects of a port's routes, from 1, in matching order. 0 is
	// the default route.
	rule int
	// instead is set if the route applies only to callers to which no earlier route
	// applies.
	instead bool
	// partly is set if the route is closed and its match covers only some of the
	// original conditions.
	partly  bool
	route   *ir.Route
	targets []target // targets whose clusters it needs
}

// ruleRoutes returns the routes of an HTTP port by the rules of its host, followed
// by the default route.
func (rd *reader) ruleRoutes(at servicePort) []plannedRoute {
	var routes []plannedRoute
	var closed withholding
	for _, rule := range rd.rulesFor.under(rd, at.service.Hostname) {
		if rd.foreign(rule.namespace, at.service.Namespace) && !at.service.VisibleIn(rule.namespace) {
			continue // Its followers do not see the service.
		}
		if !at.port.Protocol.IsHTTP() && !at.service.Egress {
			break
		}
		planned, some := rd.planRuleRoute(rule, at, &closed)
		if !some {
			continue
		}
		planned.rule = len(routes) + 1
		if routes = append(routes, guarded(planned)...); closed.all {
			return routes
		}
	}
	return append(routes, rd.defaultRoute(at.service, at.port))
}

// planRuleRoute returns false for a withheld rule whose callers are already
// refused.
func (rd *reader) planRuleRoute(rule *routeRule, at servicePort, closed *withholding) (plannedRoute, bool) {
	from := rd.followers(rule.source, rule.namespace, at.service.Namespace)
	if rd.withheld(rule.declared) {
		return closed.close(rule, from)
	}
	out := rd.planRoute(rule, at.service, at.port)
	out.source = from
	return out, true
}

// upgradeByRules returns the routes to a service, with upgrades refused on the
// default route if RouteRules apply to a caller: the rules say which connections
// may be upgraded.
func upgradeByRules(routes []plannedRoute) []plannedRoute {
	picks := func(planned plannedRoute) bool { return planned.picksUpgrades }
	last := len(routes) - 1
	if !slices.ContainsFunc(routes, picks) || picks(routes[last]) {
		return routes
	}
	out := slices.Clone(routes)
	refusing := *out[last].route // The route is shared with other callers.
	refusing.WebSocket = ir.UpgradeRefused
	out[last].route = &refusing
	return out
}

// defaultRoute returns the route for all requests that no rule matches.
func (rd *reader) defaultRoute(svc *mesh.Service, port *mesh.Port) plannedRoute {
	to := rd.newTarget(svc, port, nil)
	route := defaultRoute(to.name, svc)
	route.Retry = rd.retryByDefault()
	return plannedRoute{route: route, targets: []target{to}}
}

// toEgress sends a route to the external host, which has no versions. Its rules
// cannot lead elsewhere.
func (rd *reader) toEgress(out plannedRoute, svc *mesh.Service, port *mesh.Port) plannedRoute {
	to := rd.newTarget(svc, port, nil)
	out.targets = []target{to}
	out.route.Clusters = []ir.WeightedCluster{{Name: to.name, Weight: 100}}
	return out
}

func defaultRoute(cluster string, svc *mesh.Service) *ir.Route {
	return &ir.Route{
		Operation: "default-route",
		Clusters:  []ir.WeightedCluster{{Name: cluster, Weight: 100}},
		Origins:   []diag.Ref{svc.Origin.Ref()},
	}
}

// planRoute translates a rule for one port of its service, for any caller. As in
// Pilot, a redirect needs the cluster that it does not use.
func (rd *reader) planRoute(rule *routeRule, svc *mesh.Service, port *mesh.Port) plannedRoute {
	spec := rule.spec()
	out := plannedRoute{picksUpgrades: true, route: &ir.Route{
		Operation: rule.ref.Name,
		Match:     rule.match,
		Timeout:   timeout(spec.HTTPReqTimeout),
		Origins:   []diag.Ref{rule.ref},
	}}
	route := out.route
	if rule.closed {
		out.route = route.Closed(rule.match)
		return out
	}
	if r := spec.Redirect; r != nil {
		route.Redirect = &ir.Redirect{Host: r.Authority, Path: r.URI, StripQuery: r.URI != ""}
		out.targets = append(out.targets, rd.newTarget(svc, port, nil))
		return out
	}
	route.Rewrite, route.WebSocket = rule.rewrite, rule.upgrade
	addActions(route, spec)
	if svc.Egress {
		return rd.toEgress(out, svc, port)
	}
	for _, entry := range destinations(spec.Route) {
		to := rd.destination(rule, svc, port, entry.Destination, entry.Labels)
		out.targets = append(out.targets, to)
		route.Clusters = append(route.Clusters, ir.WeightedCluster{Name: to.name, Weight: int(entry.Weight)})
	}
	if m := spec.Mirror; m != nil {
		to := rd.destination(rule, svc, port, m, m.Labels)
		out.targets = append(out.targets, to)
		route.Mirrors = []ir.Mirror{{Cluster: to.name, PerMillion: ir.Million}}
	}
	return out
}

func addActions(route *ir.Route, spec *schema.RouteRule) {
	route.Retry = retry(spec.HTTPReqRetries)
	route.Fault = fault(spec.HTTPFault)
	route.CORS = cors(spec.CorsPolicy)
	route.RequestHeaders.Append = sortedHeaders(spec.AppendHeaders)
	setHost(route, hostIn(spec.AppendHeaders))
}

// upgrade returns whether a RouteRule allows upgrades. It applies to each
// connection that the rule takes.
func upgrade(spec *schema.RouteRule) ir.Upgrade {
	if spec.WebsocketUpgrade {
		return ir.UpgradeAllowed
	}
	return ir.UpgradeRefused
}

// destinations returns the entries with weights that sum to 100. No entry means the
// whole service, and a single entry takes all requests.
func destinations(entries []schema.DestinationWeight) []schema.DestinationWeight {
	if len(entries) > 1 {
		return entries
	}
	var lone schema.DestinationWeight
	if len(entries) == 1 {
		lone = entries[0]
	}
	lone.Weight = 100
	return []schema.DestinationWeight{lone}
}
