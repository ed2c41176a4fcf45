package compile

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
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

// reportHidden tells of rules after a catch-all that takes every request of
// the same callers.
func (p *plan) reportHidden(rules []*routeRule) {
	takesAll := map[string]*routeRule{}
	for _, rule := range rules {
		first := takesAll[""]
		if first == nil {
			first = takesAll[rule.source.String()]
		}
		switch {
		case first != nil:
			p.report(diag.Problem{
				Severity: diag.Warning, Reason: diag.Conflict, Object: rule.ref,
				Message: fmt.Sprintf("the rule is never used: %s with precedence %d comes first and takes every request",
					first.ref, first.spec.Precedence),
			})
		case rule.match.CatchAll():
			takesAll[rule.source.String()] = rule
		}
	}
}

// checkRule reports what the rule asks for and cannot get.
func (p *plan) checkRule(rule *routeRule, svc *mesh.Service) {
	p.checkSource(rule.ref, "spec.match.source", rule.source)
	if !slices.ContainsFunc(svc.Ports, func(port *mesh.Port) bool { return port.Protocol.IsHTTP() }) {
		p.report(diag.Problem{
			Severity: diag.Warning, Reason: diag.NotHonoured, Object: rule.ref, Field: "spec.destination",
			Value:   fmt.Sprintf("%q", svc.Hostname),
			Message: "the rule has no effect: no port of the service is HTTP, HTTP2 or GRPC",
		})
		return
	}
	for i, entry := range rule.spec.Route {
		p.checkDestination(rule, svc, fmt.Sprintf("spec.route[%d]", i), entry.Destination, entry.Labels)
	}
	if m := rule.spec.Mirror; m != nil {
		p.checkDestination(rule, svc, "spec.mirror", m, m.Labels)
	}
	p.checkFault(rule)
}

// checkDestination reports a place of a rule where requests would find no
// endpoint.
func (p *plan) checkDestination(rule *routeRule, own *mesh.Service, field string, to *schema.IstioService, labels mesh.Labels) {
	const consequence = "so requests that go there fail"
	dest := own
	if to != nil {
		host := p.hostname(to, rule.namespace)
		if !p.checkService(rule.ref, field, host, consequence) {
			return
		}
		dest = p.snap.Service(host)
	}
	p.checkLabels(rule.ref, field+".labels", dest.Hostname, labels, consequence)
	for _, port := range own.Ports {
		if port.Protocol.IsHTTP() && dest != own && sharedPort(port, dest) == nil {
			p.report(diag.Problem{
				Severity: diag.Warning, Reason: diag.NoSuchReference, Object: rule.ref, Field: field,
				Value: fmt.Sprintf("%q", dest.Hostname),
				Message: fmt.Sprintf("requests to port %d of %s fail there: the service needs a port that is %s as well",
					port.Number, own.Hostname, portIdentity(port, dest)),
			})
		}
	}
}

// portIdentity says what must be equal for sharedPort to find a port.
func portIdentity(p *mesh.Port, dest *mesh.Service) string {
	if dest.External {
		return fmt.Sprintf("number %d", p.Number)
	}
	return fmt.Sprintf("named %q", p.Name)
}
