package compile

import (
	"cmp"
	"fmt"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// routeRule is a usable RouteRule.
type routeRule struct {
	declared
	namespace  string
	host       string // of the destination
	precedence int32
	source     *source // nil for any caller
	match      ir.Match
	rewrite    *ir.Rewrite
	upgrade    ir.Upgrade
	// closed is set if the rule cannot act as written. Requests that fit the usable
	// conditions are answered with 503, and no later rule gets them.
	closed bool
}

// spec decodes the spec of the object. It is not cached: there may be many rules,
// and few are read again.
func (rule *routeRule) spec() *schema.RouteRule {
	spec, err := rule.object.Spec()
	if err != nil {
		panic(err) // It was decoded before.
	}
	return spec.(*schema.RouteRule)
}

// compareRules sorts rules by precedence.
func compareRules(a, b *routeRule) int {
	return cmp.Or(cmp.Compare(b.precedence, a.precedence), inKeyOrder(a.declared, b.declared))
}

// readRouteRule returns the rule of a spec, or nil if it has no destination.
func readRouteRule(p *plan, of declared, spec *schema.RouteRule) *routeRule {
	if spec.Destination == nil {
		p.reportNoDestination(of.ref)
		return nil
	}
	rule := &routeRule{
		declared:   of,
		namespace:  of.ref.Namespace,
		precedence: spec.Precedence,
		host:       p.hostname(spec.Destination, of.ref.Namespace),
		rewrite:    rewrite(spec.Rewrite),
		upgrade:    upgrade(spec),
	}
	if spec.Match != nil {
		rule.source = p.source(spec.Match.Source, rule.namespace)
	}
	match, bad := p.httpMatch(spec.Match)
	rule.match = match
	p.reportRegexes(rule, bad)
	weighs, redirects := p.weighs(rule, spec), p.redirects(rule, spec)
	known := p.knows(of, "spec.match")
	rule.closed = len(bad) > 0 || !known || !spec.Match.Followed() || !weighs || !redirects
	return rule
}

// versionsOfRule returns the versions that the rule sends requests to.
func (m *model) versionsOfRule(rule *routeRule) []labelled {
	spec := rule.spec()
	if rule.closed || spec.Redirect != nil {
		return nil
	}
	var out []labelled
	for _, entry := range destinations(spec.Route) {
		out = append(out, labelled{m.hostOr(rule, entry.Destination), mesh.Labels(entry.Labels).String()})
	}
	if to := spec.Mirror; to != nil {
		out = append(out, labelled{m.hostOr(rule, to), mesh.Labels(to.Labels).String()})
	}
	return out
}

// hostOr returns the host of a destination. The default is the rule's own host.
func (m *model) hostOr(rule *routeRule, to *schema.IstioService) string {
	if to == nil {
		return rule.host
	}
	return m.hostname(to, rule.namespace)
}

func (rp *reporter) reportRegexes(rule *routeRule, bad []badRegex) {
	for _, b := range bad {
		rp.report(diag.Problem{
			Severity: diag.Warning, Reason: diag.FieldInvalid, Code: diag.Closed, Object: rule.ref,
			Field: "spec.match.request.headers", Value: fmt.Sprintf("%q", b.regex),
			Message: fmt.Sprintf("requests that meet the other conditions are answered with 503: the expression for %s is %v", b.header, b.err),
		})
	}
}

// weighs reports whether the weights are valid and sum to 100. Validation ensures
// that; this check is for rules that were stored without it, as Envoy rejects the
// whole table.
func (rp *reporter) weighs(rule *routeRule, spec *schema.RouteRule) bool {
	sum, negative := int32(0), false
	for _, d := range destinations(spec.Route) {
		sum += d.Weight
		negative = negative || d.Weight < 0
	}
	if sum == 100 && !negative {
		return true
	}
	rp.report(diag.Problem{
		Severity: diag.Warning, Reason: diag.FieldInvalid, Code: diag.Closed, Object: rule.ref, Field: "spec.route",
		Value:   fmt.Sprint(sum),
		Message: "the rule answers 503: weights must be 0 or more and sum to 100",
	})
	return false
}

// redirects reports whether a redirect, if any, has a target.
func (rp *reporter) redirects(rule *routeRule, spec *schema.RouteRule) bool {
	r := spec.Redirect
	if r == nil || r.Authority != "" || r.URI != "" {
		return true
	}
	rp.notHonoured(diag.Closed, rule.ref, "spec.redirect", "the rule answers 503: it must redirect to another uri or authority")
	return false
}
