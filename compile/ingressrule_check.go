package compile

import (
	"fmt"
	"slices"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
)

// checkIngress reports which requests the rules of the service do not cover at an
// ingress, which has no instances of its own.
func (p *plan) checkIngress(rule *ingressRule, svc *mesh.Service) {
	visible := visibleAtEdge(p.home(svc.Namespace).routesTo(svc, ingressPort(rule, svc)), ofNobody)
	covered := len(visible) < 2
	for _, planned := range visible {
		match, some := narrowed(planned.route.Match, rule.path, rule.prefix)
		covered = covered || some && !planned.route.Match.CatchAll() && rule.within(match)
	}
	if !covered && p.pilot().IngressCatchAllLost {
		p.notHonoured(diag.AsPilot, rule.ref, "spec.destination", fmt.Sprintf("only requests for %s that one of its rules matches have a route; %s",
			svc.Hostname, switchHint("ingressCatchAllLost", "the others go there too")))
	}
}

// within reports whether a match takes every request of the rule.
func (r *ingressRule) within(m ir.Match) bool {
	whole := ir.Match{Path: r.path, Prefix: r.prefix}
	return len(m.Headers) == 0 && len(m.Query) == 0 && m.Regex == "" && m.Path == whole.Path && (m.Path != "" || m.Prefix == whole.Prefix)
}

// checkEdgeFaults reports rules whose routes an ingress uses without their faults.
func (p *plan) checkEdgeFaults() {
	if !p.pilot().EdgeFaultsLost {
		return
	}
	told := map[diag.Ref]bool{}
	for _, rule := range p.ingressRules.rules(&p.reader) {
		svc := p.ingressService(rule)
		if svc == nil {
			continue
		}
		for _, planned := range p.home(svc.Namespace).edgeRoutes(rule) {
			if ref := planned.route.Origins[0]; planned.route.Fault != nil && !told[ref] {
				told[ref] = true
				p.notHonoured(diag.AsPilot, ref, "", "ingresses inject no fault; "+switchHint("edgeFaultsLost", "they do"))
			}
		}
	}
}

// checkSecrets reports secrets whose certificate is not used: a listener has one
// key pair.
func (p *plan) checkSecrets() {
	shown, rules := p.ingressSecret(), p.ingressRules.rules(&p.reader)
	by := slices.IndexFunc(rules, func(rule *ingressRule) bool { return rule.secret == shown })
	for _, rule := range rules {
		if rule.secret != "" && rule.secret != shown {
			p.conflict(diag.SecretClaimed, rule.ref, "spec.tlsSecret", fmt.Sprintf("the certificate of %q, as %s has it, is presented instead: an ingress has one certificate for all rules, that of the first secret by name", shown, rules[by].ref))
		}
	}
}
