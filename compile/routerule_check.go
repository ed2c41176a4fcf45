package compile

import (
	"fmt"
	"slices"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// checkRouteRule reports what the rule asks for and cannot get. A rule that no
// request can reach is still used: which rules a caller sees depends on its view.
func (p *plan) checkRouteRule(rule *routeRule) {
	if excess := p.excess(rule.declared); excess.Withheld() {
		p.reportRuleExcess(rule, excess)
		return
	}
	if !p.checkService(rule.ref, "spec.destination", rule.host, "so the rule has no effect") {
		return
	}
	if first := p.hidden.Get(p.r, rule.host)[rule]; first != nil {
		p.conflict(diag.NeverUsed, rule.ref, "", fmt.Sprintf("the rule is never used: %s with precedence %d comes first and takes every request",
			first.ref, first.precedence))
	}
	p.checkTied(rule)
	p.checkRule(rule, p.serviceOf(rule.namespace, rule.host))
}

// hiddenRules maps each rule for a host that comes after a catch-all for the same
// callers to that catch-all.
func (rd *reader) hiddenRules(host string) map[*routeRule]*routeRule {
	hidden, takesAll := map[*routeRule]*routeRule{}, map[string]*routeRule{}
	owner := rd.ownerOf(host)
	for _, rule := range rd.rulesFor.under(rd, host) {
		from := rd.followers(rule.source, rule.namespace, owner).String()
		first := takesAll[""]
		if first == nil {
			first = takesAll[from]
		}
		switch {
		case first != nil:
			hidden[rule] = first
		case rule.match.CatchAll():
			takesAll[from] = rule
		}
	}
	return hidden
}

func (p *plan) checkRule(rule *routeRule, svc *mesh.Service) {
	p.checkSource(rule.ref, "spec.match.source", rule.source)
	p.checkFollowers(rule.ref, "spec.destination", rule.source, rule.host)
	if !slices.ContainsFunc(svc.Ports, func(port *mesh.Port) bool { return p.routesHTTP(svc, port) }) {
		p.report(diag.Problem{
			Severity: diag.Warning, Reason: diag.NotHonoured, Code: diag.WrongProtocol, Object: rule.ref, Field: "spec.destination",
			Value:   fmt.Sprintf("%q", svc.Hostname),
			Message: "the rule has no effect: no port of the service is HTTP, HTTP2 or GRPC",
		})
		return
	}
	spec := rule.spec()
	p.checkFault(rule, spec.HTTPFault)
	p.checkURI(rule)
	if svc.Egress {
		p.checkEgressActions(rule, spec)
		return
	}
	for i, entry := range spec.Route {
		p.checkDestination(rule, svc, fmt.Sprintf("spec.route[%d]", i), entry.Destination, entry.Labels)
	}
	if m := spec.Mirror; m != nil {
		p.checkDestination(rule, svc, "spec.mirror", m, m.Labels)
	}
}

// checkURI reports a regular expression for paths that is compared with a header.
func (rp *reporter) checkURI(rule *routeRule) {
	if slices.ContainsFunc(rule.match.Headers, func(h ir.HeaderMatch) bool { return h.Name == "uri" && h.Regex != "" }) {
		rp.notHonoured(diag.AsPilot, rule.ref, "spec.match.request.headers.uri.regex",
			"the rule never matches: the expression is compared with a header named uri, which no request has; "+
				switchHint("uriRegexAsHeader", "it is compared with the path"))
	}
}

// checkEgressActions reports destinations of a rule for an external host: all its
// requests go to that host.
func (rp *reporter) checkEgressActions(rule *routeRule, spec *schema.RouteRule) {
	const only = "requests to the host of an EgressRule go to that host only"
	if len(spec.Route) > 0 {
		rp.notHonoured(diag.NotFollowed, rule.ref, "spec.route", only)
	}
	if spec.Mirror != nil {
		rp.notHonoured(diag.NotFollowed, rule.ref, "spec.mirror", only)
	}
}

// checkDestination reports a destination of a rule at which requests find no
// endpoint.
func (p *plan) checkDestination(rule *routeRule, own *mesh.Service, field string, to *schema.IstioService, labels mesh.Labels) {
	consequence := lossOf(field)
	dest := own
	if to != nil {
		host := p.hostname(to, rule.namespace)
		if host != own.Hostname {
			if !p.checkSeen(rule.ref, field, host, consequence) {
				return
			}
			dest = p.seenBy(rule.namespace, host)
		}
	}
	p.checkLabels(rule.ref, field+".labels", dest.Hostname, labels, consequence)
	for _, port := range own.Ports {
		if port.Protocol.IsHTTP() && dest != own && sharedPort(port, dest) == nil {
			p.report(diag.Problem{
				Severity: diag.Warning, Reason: diag.NoSuchReference, Code: diag.UnknownPort, Object: rule.ref, Field: field,
				Value: fmt.Sprintf("%q", dest.Hostname),
				Message: fmt.Sprintf("requests to port %d of %s fail there: the service has no port %s",
					port.Number, own.Hostname, portIdentity(port, dest)),
			})
		}
	}
}

// portIdentity says how sharedPort identifies a port.
func portIdentity(p *mesh.Port, dest *mesh.Service) string {
	if dest.External {
		return fmt.Sprintf("number %d", p.Number)
	}
	return fmt.Sprintf("named %q", p.Name)
}
