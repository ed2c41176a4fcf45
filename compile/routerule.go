package compile

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/schema"
)

// routeRule is a RouteRule that can be used.
type routeRule struct {
	ref       diag.Ref
	namespace string
	spec      *schema.RouteRule
	host      string  // of the destination
	source    *source // nil: any caller
	match     ir.Match
}

// planRouteRules sorts the rules of each host. Rules that no request can reach
// are reported and kept: which of them a caller sees is for Proxy to say.
func (p *plan) planRouteRules() {
	specs(p, "RouteRule", p.addRouteRule)
	for _, svc := range p.snap.Services {
		rules := p.rules[svc.Hostname]
		slices.SortStableFunc(rules, func(a, b *routeRule) int {
			return cmp.Compare(b.spec.Precedence, a.spec.Precedence)
		})
		p.reportHidden(rules)
		for _, rule := range rules {
			p.checkRule(rule, svc)
		}
	}
}

// addRouteRule takes a rule in, unless its destination is unknown or a proxy
// would refuse what it says.
func (p *plan) addRouteRule(o *schema.Object, spec *schema.RouteRule) {
	if spec.Destination == nil {
		p.reportNoDestination(o)
		return
	}
	rule := &routeRule{
		ref:       o.Key().Ref(),
		namespace: o.Meta.Namespace,
		spec:      spec,
		host:      p.hostname(spec.Destination, o.Meta.Namespace),
	}
	if spec.Match != nil {
		rule.source = p.source(spec.Match.Source, rule.namespace)
	}
	match, bad := httpMatch(spec.Match)
	rule.match = match
	p.reportRegexes(rule, bad)
	known := p.checkService(rule.ref, "spec.destination", rule.host, "so the rule has no effect")
	if p.weighs(rule) && len(bad) == 0 && known {
		p.rules[rule.host] = append(p.rules[rule.host], rule)
	}
}

func (p *plan) reportRegexes(rule *routeRule, bad []badRegex) {
	for _, b := range bad {
		p.report(diag.Problem{
			Severity: diag.Warning, Reason: diag.FieldInvalid, Object: rule.ref,
			Field: "spec.match.request.headers", Value: fmt.Sprintf("%q", b.regex),
			Message: fmt.Sprintf("the rule is left out, its expression for %s is %v", b.header, b.err),
		})
	}
}

// weighs tells whether the weights make up a whole. Validation sees to that;
// this is for rules that were stored past it, as Envoy refuses the whole table.
func (p *plan) weighs(rule *routeRule) bool {
	sum, negative := int32(0), false
	for _, d := range destinations(rule.spec.Route) {
		sum += d.Weight
		negative = negative || d.Weight < 0
	}
	if sum == 100 && !negative {
		return true
	}
	p.report(diag.Problem{
		Severity: diag.Warning, Reason: diag.FieldInvalid, Object: rule.ref, Field: "spec.route",
		Value:   fmt.Sprint(sum),
		Message: "the rule is left out: weights must be 0 or more and sum to 100",
	})
	return false
}
