package compile

import (
	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// plannedRoute is a route for callers of one source.
type plannedRoute struct {
	source  *source // nil: any caller
	route   *ir.Route
	targets []target // the clusters it needs
}

// planRoutes lays out every HTTP port: its rules, then the default route.
func (p *plan) planRoutes() {
	for _, svc := range p.snap.Services {
		for _, port := range svc.Ports {
			if !port.Protocol.IsHTTP() {
				continue
			}
			var routes []plannedRoute
			for _, rule := range p.rules[svc.Hostname] {
				routes = append(routes, p.planRoute(rule, svc, port))
			}
			to := p.newTarget(svc, port, nil)
			p.routes[servicePort{svc, port}] = append(routes, plannedRoute{
				route: defaultRoute(to.cluster.Name, svc), targets: []target{to},
			})
		}
	}
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
	spec := rule.spec
	out := plannedRoute{source: rule.source, route: &ir.Route{
		Operation: rule.ref.Name,
		Match:     rule.match,
		Timeout:   timeout(spec.HTTPReqTimeout),
		Origins:   []diag.Ref{rule.ref},
	}}
	route := out.route
	if r := spec.Redirect; r != nil {
		route.Redirect = &ir.Redirect{Host: r.Authority, Path: r.URI}
		out.targets = append(out.targets, p.newTarget(svc, port, nil))
		return out
	}
	for _, entry := range destinations(spec.Route) {
		to := p.destination(rule, svc, port, entry.Destination, entry.Labels)
		out.targets = append(out.targets, to)
		route.Clusters = append(route.Clusters, ir.WeightedCluster{Name: to.cluster.Name, Weight: int(entry.Weight)})
		p.routed[labelled{to.host, to.labels.String()}] = true
	}
	if m := spec.Mirror; m != nil {
		to := p.destination(rule, svc, port, m, m.Labels)
		out.targets = append(out.targets, to)
		route.Mirror = to.cluster.Name
		p.routed[labelled{to.host, to.labels.String()}] = true
	}
	route.Rewrite = rewrite(spec.Rewrite)
	route.Retry = retry(spec.HTTPReqRetries)
	route.Fault = fault(spec.HTTPFault)
	route.CORS = cors(spec.CorsPolicy)
	route.AppendHeaders = appendHeaders(spec.AppendHeaders)
	route.WebSocket = spec.WebsocketUpgrade
	return out
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
