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
	order     int // among all RouteRules, by namespace and name
	namespace string
	spec      *schema.RouteRule
	host      string  // of the destination
	source    *source // nil: any caller
	match     ir.Match
	// closed: the rule cannot act as written. What can be asked of its match
	// is answered with 503, and no rule after it gets that.
	closed bool
}

// planRouteRules sorts the rules of each host. Rules that no request can reach
// are reported and kept: which of them a caller sees is for Proxy to say.
func (p *plan) planRouteRules() {
	order := 0
	specs(p, "RouteRule", func(o *schema.Object, spec *schema.RouteRule) {
		order++
		p.addRouteRule(o, spec, order)
	})
	for _, svc := range slices.Concat(p.snap.Services, p.egress) {
		if svc != p.service(svc.Hostname) {
			continue // The first service of the host stands for all.
		}
		rules := p.rules[svc.Hostname]
		slices.SortFunc(rules, compareRules)
		p.reportHidden(rules)
		for _, rule := range rules {
			p.checkRule(rule, p.serviceOf(rule.namespace, rule.host))
		}
	}
}

// compareRules puts the one to apply first in front.
func compareRules(a, b *routeRule) int {
	return cmp.Or(cmp.Compare(b.spec.Precedence, a.spec.Precedence), cmp.Compare(a.order, b.order))
}

// addRouteRule takes a rule in, unless its destination is unknown.
func (p *plan) addRouteRule(o *schema.Object, spec *schema.RouteRule, order int) {
	if spec.Destination == nil {
		p.reportNoDestination(o)
		return
	}
	rule := &routeRule{
		ref:       o.Key().Ref(),
		order:     order,
		namespace: o.Meta.Namespace,
		spec:      spec,
		host:      p.hostname(spec.Destination, o.Meta.Namespace),
	}
	if spec.Match != nil {
		rule.source = p.source(spec.Match.Source, rule.namespace)
	}
	match, bad := p.httpMatch(spec.Match)
	rule.match = match
	p.reportRegexes(rule, bad)
	weighs, redirects := p.weighs(rule), p.redirects(rule)
	rule.closed = len(bad) > 0 || !spec.Match.Followed() || !weighs || !redirects
	if p.checkService(rule.ref, "spec.destination", rule.host, "so the rule has no effect") {
		p.rules[rule.host] = append(p.rules[rule.host], rule)
	}
}

func (p *plan) reportRegexes(rule *routeRule, bad []badRegex) {
	for _, b := range bad {
		p.report(diag.Problem{
			Severity: diag.Warning, Reason: diag.FieldInvalid, Object: rule.ref,
			Field: "spec.match.request.headers", Value: fmt.Sprintf("%q", b.regex),
			Message: fmt.Sprintf("requests that fit the other conditions are answered with 503: the expression for %s is %v", b.header, b.err),
		})
	}
}

// weighs reports whether the weights make up a whole. Validation sees to that;
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
		Message: "the rule answers 503: weights must be 0 or more and sum to 100",
	})
	return false
}

// redirects reports whether a redirect leads somewhere.
func (p *plan) redirects(rule *routeRule) bool {
	r := rule.spec.Redirect
	if r == nil || r.Authority != "" || r.URI != "" {
		return true
	}
	p.notHonoured(rule.ref, "spec.redirect", "the rule answers 503: it must redirect to another uri or authority")
	return false
}
