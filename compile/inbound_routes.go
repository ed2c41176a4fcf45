package compile

import (
	"fmt"
	"slices"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// localRules are the rules of all services of a workload, in order and without
// clusters.
type localRules struct {
	routes  []ir.Route
	leftOut bool // whether rules were left out, so that what they allow is not known
}

// localRoutes returns the routes that each of the given number of ports repeats.
func (c *writer) localRoutes(ports int) localRules {
	var routes []ir.Route
	var rules []*routeRule
	var virtual []*virtualService
	seen := map[string]bool{}
	for _, i := range c.own() {
		host := i.Service.Hostname
		if seen[host] {
			continue
		}
		seen[host] = true
		if vs := c.domain.virtualFor(host); vs != nil {
			virtual = append(virtual, vs)
		} else {
			rules = append(rules, c.plan.rulesFor.under(&c.plan.reader, host)...)
		}
	}
	slices.SortFunc(virtual, func(a, b *virtualService) int { return c.plan.inAgeOrder(a.declared, b.declared) })
	for _, vs := range slices.Compact(virtual) {
		routes = append(routes, c.plan.inboundVirtual(vs)...)
	}
	slices.SortFunc(rules, compareRules)
	for _, rule := range rules {
		if rule.closed || c.plan.withheld(rule.declared) || c.plan.foreign(rule.namespace, c.domain.ownerOf(rule.host)) {
			continue
		}
		routes = append(routes, inboundRoute(rule.ref, rule.match, rule.rewrite, rule.upgrade))
	}
	return c.plan.affordable(routes, ports)
}

// affordable leaves out the routes of the objects that multiply most with the ports
// of a workload, until the rest is within the budget of one object.
func (p *plan) affordable(routes []ir.Route, ports int) localRules {
	most := p.settings.BudgetOrDefault().Object
	sizes, all := map[diag.Ref]int{}, 0
	for i := range routes {
		size := 1 + textOf(&routes[i].Match)/kib
		sizes[routes[i].Origins[0]] += size
		all += size
	}
	if times(all, ports) <= most {
		return localRules{routes: routes}
	}
	var costs []mesh.Cost
	for ref, size := range sizes {
		costs = append(costs, mesh.Cost{Object: schema.Key(ref), Parts: times(size, ports)})
	}
	left := mesh.Budget{Object: most, Mesh: most}.Withheld(costs)
	kept := slices.DeleteFunc(slices.Clone(routes), func(r ir.Route) bool { return left[schema.Key(r.Origins[0])].Withheld() })
	for _, r := range routes {
		if ref := r.Origins[0]; left[schema.Key(ref)].Withheld() {
			p.reportTooManyInbound(ref, sizes[ref], ports, most)
			delete(left, schema.Key(ref))
		}
	}
	return localRules{kept, true}
}

func (rp *reporter) reportTooManyInbound(ref diag.Ref, routes, ports, most int) {
	product := schema.Product{{Length: routes, Of: "parts of routes"}, {Length: ports, Of: "ports of a workload of its services"}}
	rp.report(diag.Problem{
		Severity: diag.Warning, Reason: diag.NotHonoured, Code: diag.OverBudget, Object: ref, Field: "spec",
		Message: fmt.Sprintf("proxies beside a workload do not repeat its routes for calls to the workload, and allow no upgrade that a rule must allow: %s, which is too many: the rules of all services of the workload together may multiply to %s parts there (budget in the mesh settings)",
			product, schema.Thousands(most)),
	})
}

// textOf returns how many bytes of text a match has.
func textOf(m *ir.Match) int {
	out := len(m.Path) + len(m.Prefix) + len(m.Regex)
	for _, h := range m.Headers {
		out += len(h.Name) + len(h.Exact) + len(h.Prefix) + len(h.Regex)
	}
	for _, q := range m.Query {
		out += len(q.Name) + len(q.Exact) + len(q.Regex)
	}
	return out
}
