package compile

import (
	"fmt"
	"maps"
	"slices"
	"time"

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

func timeout(t *schema.HTTPTimeout) time.Duration {
	if t == nil || t.SimpleTimeout == nil {
		return 0
	}
	return t.SimpleTimeout.Timeout.Duration
}

func rewrite(r *schema.HTTPRewrite) *ir.Rewrite {
	if r == nil {
		return nil
	}
	return &ir.Rewrite{Host: r.Authority, Path: r.URI}
}

func retry(r *schema.HTTPRetry) *ir.Retry {
	if r == nil || r.SimpleRetry == nil || r.SimpleRetry.Attempts <= 0 {
		return nil
	}
	return &ir.Retry{
		Attempts:      int(r.SimpleRetry.Attempts),
		PerTryTimeout: r.SimpleRetry.PerTryTimeout.Duration,
	}
}

// fault cuts percentages to whole numbers; one below 1 is no fault.
func fault(f *schema.HTTPFaultInjection) *ir.Fault {
	if f == nil {
		return nil
	}
	var out ir.Fault
	if d := f.Delay; d != nil && d.Percent >= 1 {
		out.Delay, out.DelayPercent = d.FixedDelay.Duration, int(d.Percent)
	}
	if a := f.Abort; a != nil && a.Percent >= 1 && a.HTTPStatus > 0 {
		out.AbortStatus, out.AbortPercent = int(a.HTTPStatus), int(a.Percent)
	}
	if out == (ir.Fault{}) {
		return nil
	}
	return &out
}

// checkFault reports faults that are written down and never injected.
func (p *plan) checkFault(rule *routeRule) {
	f := rule.spec.HTTPFault
	if f == nil {
		return
	}
	if f.Delay != nil {
		p.checkPercent(rule, "delay", f.Delay.Percent)
	}
	if f.Abort != nil {
		p.checkPercent(rule, "abort", f.Abort.Percent)
	}
}

func (p *plan) checkPercent(rule *routeRule, part string, percent float64) {
	if percent >= 1 {
		return
	}
	p.report(diag.Problem{
		Severity: diag.Warning, Reason: diag.NotHonoured, Object: rule.ref,
		Field: "spec.httpFault." + part + ".percent", Value: fmt.Sprint(percent),
		Message: "no " + part + " is injected: an unset percentage is 0, and fractions are cut; write 100 for every request",
	})
}

func cors(c *schema.CorsPolicy) *ir.CORS {
	if c == nil {
		return nil
	}
	out := &ir.CORS{
		AllowOrigin:      c.AllowOrigin,
		AllowMethods:     c.AllowMethods,
		AllowHeaders:     c.AllowHeaders,
		ExposeHeaders:    c.ExposeHeaders,
		AllowCredentials: c.AllowCredentials,
	}
	if c.MaxAge != nil {
		out.MaxAge = c.MaxAge.Duration
	}
	return out
}

func appendHeaders(headers map[string]string) []ir.Header {
	var out []ir.Header
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		out = append(out, ir.Header{Name: name, Value: headers[name]})
	}
	return out
}
