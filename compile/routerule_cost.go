package compile

import (
	"fmt"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// partsOfVersion is what the cluster of a version takes, with its encoded forms.
const partsOfVersion = 4

// ruleSize is what a RouteRule comes to at one port: its route with its text, a part
// for each destination, and the clusters of the versions that it names.
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

// ruleCost is what a RouteRule multiplies to: all of it at each HTTP port of its service
// but the first.
func (p *plan) ruleCost(rule *routeRule) cost {
	ports := p.httpPortsOf(rule.host)
	if ports < 2 {
		return cost{}
	}
	product := schema.Product{
		{Length: ruleSize(rule), Of: "parts of the route (its text, its destinations, and their versions)"},
		{Length: ports, Of: "ports of " + rule.host},
	}
	return cost{parts: product.Parts() - product[0].Length, of: product.String()}
}

// httpPortsOf are those of all services with a host name. Those of EgressRules count
// whether or not the rules are withheld.
func (p *plan) httpPortsOf(host string) int {
	count := func(svc *mesh.Service) int { return p.countPorts(svc).http }
	ports := 0
	for _, svc := range p.registry.byHost.under(p, host) {
		ports += count(svc)
	}
	if svc := p.egressDeclared.Get(p.r, none{}).byHost[host]; svc != nil {
		ports += count(svc)
	}
	return ports
}

// maxWithheldSources is for how many kinds of callers of a service withheld rules are
// closed apart from each other.
const maxWithheldSources = 8

// withholding closes the routes of a host from the first rule on that is withheld: what
// else the rule asks for is not looked at.
type withholding struct {
	sources map[string]bool
	all     bool // nothing is left to route
}

// close is the route of a withheld rule; false if its callers are refused already.
func (w *withholding) close(rule *routeRule) (plannedRoute, bool) {
	from := rule.source
	if w.sources == nil {
		w.sources = map[string]bool{}
	}
	if w.sources[from.String()] {
		return plannedRoute{}, false
	}
	if w.sources[from.String()] = true; len(w.sources) > maxWithheldSources {
		from = nil
	}
	w.all = from == nil
	route := &ir.Route{Operation: rule.ref.Name, Origins: []diag.Ref{rule.ref}}
	return plannedRoute{source: from, picksUpgrades: true, route: route.Closed(ir.Match{})}, true
}

// reportRuleExcess tells the author of a rule that is withheld.
func (p *plan) reportRuleExcess(rule *routeRule, excess mesh.Excess) {
	effect := "requests of its callers that no rule before it takes are answered with 503"
	p.reportExcess(excess, rule.ref, p.ruleCosts.costs.Get(p.r, rule), effect)
}

// ingressCost is what an IngressRule multiplies to: it has a route for each of its
// service's, but the first.
func (p *plan) ingressCost(rule *ingressRule) cost {
	svc := p.ingressService(rule)
	if svc == nil || rule.closed {
		return cost{}
	}
	routes := 0
	for _, of := range p.rulesFor.under(p, svc.Hostname) {
		routes += ruleSize(of)
	}
	if vs := p.home(svc.Namespace).virtualFor(svc.Hostname); vs != nil {
		if parts := p.routeParts(vs); parts <= p.budget.ledger.Budget.Object { // Else it is withheld, and alone to blame.
			routes = max(routes, parts)
		}
	}
	return cost{
		parts: max(0, routes-1),
		of:    fmt.Sprintf("%s parts of the routes of %s at this rule", schema.Thousands(routes), svc.Hostname),
	}
}

// egressCost is what an EgressRule comes to: a cluster and a virtual host for each port.
func egressCost(_ *plan, rule *egressRule) cost {
	product := schema.Product{{Length: len(rule.spec.Ports), Of: "ports"}, {Length: partsOfEgressPort, Of: "parts"}}
	return cost{parts: product.Parts(), of: product.String()}
}

// partsOfEgressPort are as many as those of a ServiceEntry's host at a port.
const partsOfEgressPort = 8
