package compile

import (
	"fmt"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// partsOfVersion is the number of parts of a version's cluster, with its encoded
// forms.
const partsOfVersion = 4

// ruleSize returns the number of parts of a RouteRule at one port: its route with
// its text, one part for each destination, and the clusters of the versions that it
// names.
func ruleSize(rule *routeRule) int {
	spec := rule.spec()
	out := 1 + len(rule.object.SpecJSON())/kib
	if rule.closed || spec.Redirect != nil {
		return out
	}
	to := len(spec.Route)
	if spec.Mirror != nil {
		to++
	}
	out += max(0, to-1)
	for _, entry := range spec.Route {
		if len(entry.Labels) > 0 {
			out += partsOfVersion
		}
	}
	return out
}

// ruleCost returns how far a RouteRule multiplies: it is repeated at each HTTP port
// of its service after the first.
func (rd *reader) ruleCost(rule *routeRule) cost {
	ports := rd.httpPortsOf(rule.host, rule.namespace)
	if ports < 2 {
		return cost{}
	}
	product := schema.Product{
		{Length: ruleSize(rule), Of: "parts of the route (its text, its destinations, and their versions)"},
		{Length: ports, Of: "ports of " + rule.host},
	}
	return cost{parts: product.Parts() - product[0].Length, factors: product.String()}
}

// httpPortsOf counts the HTTP ports of the services with a host name that count for a
// rule of a namespace. Ports of EgressRules count even if the rules are withheld.
func (rd *reader) httpPortsOf(host, namespace string) int {
	count := func(svc *mesh.Service) int { return rd.countPorts(svc).http }
	ports := 0
	for _, svc := range rd.registry.byHost.under(rd, host) {
		if rd.countsFor(namespace, svc) {
			ports += count(svc)
		}
	}
	if svc := rd.egressDeclared.Get(rd.r, none{}).byHost[host]; svc != nil {
		ports += count(svc)
	}
	return ports
}

// maxWithheldSources is the maximum number of sources for which withheld rules of a
// service are closed separately.
const maxWithheldSources = 8

// withholding closes the routes of a host from the first withheld rule on. Other
// conditions of that rule are ignored.
type withholding struct {
	sources map[string]bool
	all     bool // whether nothing is left to route
}

// close returns the route of a withheld rule for callers of a source, or false if
// these are already refused.
func (w *withholding) close(rule *routeRule, from *source) (plannedRoute, bool) {
	if w.sources == nil {
		w.sources = map[string]bool{}
	}
	if w.sources[from.String()] {
		return plannedRoute{}, false
	}
	if w.sources[from.String()] = true; len(w.sources) > maxWithheldSources {
		from = from.onlyHome()
	}
	w.all = from == nil
	route := &ir.Route{Operation: rule.ref.Name, Origins: []diag.Ref{rule.ref}}
	return plannedRoute{source: from, picksUpgrades: true, route: route.Closed(ir.Match{})}, true
}

// reportRuleExcess reports a withheld rule.
func (p *plan) reportRuleExcess(rule *routeRule, excess mesh.Excess) {
	effect := "requests of its callers that no earlier rule matches are answered with 503"
	p.reportExcess(excess, rule.ref, p.ruleCosts.costs.Get(p.r, rule), effect)
}

// ingressCost returns how far an IngressRule multiplies: it has a route for each
// one of its service after the first.
func (rd *reader) ingressCost(rule *ingressRule) cost {
	svc := rd.ingressService(rule)
	if svc == nil || rule.closed {
		return cost{}
	}
	routes := 0
	for _, of := range rd.rulesFor.under(rd, svc.Hostname) {
		if ofNobody(rd.followers(of.source, of.namespace, svc.Namespace)) { // An ingress has no routes for others.
			routes += ruleSize(of)
		}
	}
	if vs := rd.home(svc.Namespace).virtualFor(svc.Hostname); vs != nil {
		if parts := rd.routeParts(vs); parts <= rd.budget.ledger.Budget.Object { // Otherwise the VirtualService is withheld, and it alone is at fault.
			routes = max(routes, parts)
		}
	}
	return cost{
		parts:   max(0, routes-1),
		factors: fmt.Sprintf("%s parts of the routes of %s at this rule", schema.Thousands(routes), svc.Hostname),
	}
}

// egressCost returns how far an EgressRule multiplies: a cluster and a virtual host
// for each port.
func egressCost(_ *plan, rule *egressRule) cost {
	product := schema.Product{{Length: len(rule.spec.Ports), Of: "ports"}, {Length: partsOfEgressPort, Of: "parts"}}
	return cost{parts: product.Parts(), factors: product.String()}
}

// partsOfEgressPort equals the parts of a ServiceEntry's host at a port.
const partsOfEgressPort = 8
