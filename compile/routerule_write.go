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
	source      *source // nil: any caller
	sidecarOnly bool    // for sidecars only
	// picksUpgrades: a connection that is upgraded must be one that this route, or
	// one like it, allows to.
	picksUpgrades bool
	// rule tells the objects apart that a port's routes are of, from 1 in the order
	// in which they are asked. 0 is the default route.
	rule int
	// instead: the route is for callers that no route before it is for.
	instead bool
	// partly: the match is only a part of what was asked for, and the route is
	// closed.
	partly  bool
	route   *ir.Route
	targets []target // the clusters it needs
}

// ruleRoutes are the routes of an HTTP port by the rules of its host, and then
// the default route.
func (p *plan) ruleRoutes(at servicePort) []plannedRoute {
	var routes []plannedRoute
	var closed withholding
	for _, rule := range p.rulesFor.under(p, at.service.Hostname) {
		if !at.port.Protocol.IsHTTP() && !at.service.Egress {
			break
		}
		planned, some := p.planRuleRoute(rule, at, &closed)
		if !some {
			continue
		}
		planned.rule = len(routes) + 1
		if routes = append(routes, planned); closed.all {
			return routes
		}
	}
	return append(routes, p.defaultRoute(at.service, at.port))
}

// planRuleRoute is false for a withheld rule whose callers are refused by another one.
func (p *plan) planRuleRoute(rule *routeRule, at servicePort, closed *withholding) (plannedRoute, bool) {
	if p.withheld(rule.declared) {
		return closed.close(rule)
	}
	return p.planRoute(rule, at.service, at.port), true
}

// upgradeByRules are the routes to a service: where RouteRules hold for a caller,
// a connection that none of them takes is not upgraded, as they say which are.
func upgradeByRules(routes []plannedRoute) []plannedRoute {
	picks := func(planned plannedRoute) bool { return planned.picksUpgrades }
	last := len(routes) - 1
	if !slices.ContainsFunc(routes, picks) || picks(routes[last]) {
		return routes
	}
	out := slices.Clone(routes)
	refusing := *out[last].route // It is shared with other callers.
	refusing.WebSocket = ir.UpgradeRefused
	out[last].route = &refusing
	return out
}

// defaultRoute takes all requests that no rule takes.
func (p *plan) defaultRoute(svc *mesh.Service, port *mesh.Port) plannedRoute {
	to := p.newTarget(svc, port, nil)
	route := defaultRoute(to.name, svc)
	route.Retry = p.retryByDefault()
	return plannedRoute{route: route, targets: []target{to}}
}

// toEgress sends a route to the host outside, which has no versions and whose
// rules lead nowhere else.
func (p *plan) toEgress(out plannedRoute, svc *mesh.Service, port *mesh.Port) plannedRoute {
	to := p.newTarget(svc, port, nil)
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

// planRoute spells a rule for one port of its service. A redirect asks for the
// cluster it does not use, as Pilot did.
func (p *plan) planRoute(rule *routeRule, svc *mesh.Service, port *mesh.Port) plannedRoute {
	spec := rule.spec()
	out := plannedRoute{source: rule.source, picksUpgrades: true, route: &ir.Route{
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
		out.targets = append(out.targets, p.newTarget(svc, port, nil))
		return out
	}
	route.Rewrite, route.WebSocket = rule.rewrite, rule.upgrade
	addActions(route, spec)
	if svc.Egress {
		return p.toEgress(out, svc, port)
	}
	for _, entry := range destinations(spec.Route) {
		to := p.destination(rule, svc, port, entry.Destination, entry.Labels)
		out.targets = append(out.targets, to)
		route.Clusters = append(route.Clusters, ir.WeightedCluster{Name: to.name, Weight: int(entry.Weight)})
	}
	if m := spec.Mirror; m != nil {
		to := p.destination(rule, svc, port, m, m.Labels)
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

// upgrade: a RouteRule says it of each connection that it takes.
func upgrade(spec *schema.RouteRule) ir.Upgrade {
	if spec.WebsocketUpgrade {
		return ir.UpgradeAllowed
	}
	return ir.UpgradeRefused
}

// destinations are the entries with weights that sum to 100: no entry at all
// is the whole service, and a lone one takes everything.
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
