package compile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/mesh"
)

// checkVirtualService reports problems of a VirtualService as proxies in its own
// namespace see it.
func (p *plan) checkVirtualService(vs *virtualService) {
	if excess := p.excess(vs.declared); excess.Withheld() {
		effect := "requests that it would route are answered with 503, and connections fail"
		if slices.Contains(p.crowds.Get(p.r, none{}).listed(), vs) {
			effect = "there are too many hosts even for that, so sidecars that follow it refuse requests to all unknown hosts, and connections that it would route fail"
		}
		p.reportExcess(excess, vs.ref, p.virtualCosts.costs.Get(p.r, vs), effect)
		return
	}
	if field := vs.unknownConnection(); field != "" {
		p.notHonoured(diag.Closed, vs.ref, field, "connections that the VirtualService would route fail: this version does not know the field")
	}
	home := p.from(p.home(vs.ref.Namespace))
	for i, name := range vs.meshHosts() {
		home.checkHost(vs, fmt.Sprintf("spec.hosts[%d]", i), name)
	}
	for _, r := range vs.http {
		for at, to := range r.destinations() {
			home.checkTarget(vs, at, to)
		}
		if len(vs.spec.GetHosts()) > 0 {
			p.checkMatchGateways(vs, r)
		}
	}
	p.checkUndeclaredPorts(vs)
	p.checkSources(vs)
	p.checkDelegates(vs)
	home.checkPorts(vs)
	home.checkMatchPorts(vs)
	home.checkEgressTargets(vs)
	home.checkBorrowing(vs)
	home.checkTCPRoutes(vs)
	p.checkEdges(vs)
	p.checkBound(vs)
	p.checkGatewayPorts(vs)
}

// checkMatchGateways reports gateways of a match that the hosts are not bound to.
func (rp *reporter) checkMatchGateways(vs *virtualService, r *httpRoute) {
	for i, m := range r.spec.GetMatch() {
		for _, name := range m.GetGateways() {
			if !vs.serves(nil, vs.gatewayName(name)) {
				rp.notHonoured(diag.UnknownGateway, vs.ref, fmt.Sprintf("%s.match[%d].gateways", r.field, i),
					fmt.Sprintf("no request comes from %q, which is not among the gateways of the VirtualService", name))
			}
		}
	}
}

// checkSources reports a VirtualService that applies to some callers only. As in
// Istio, other callers are not refused: they do not see it.
func (p *plan) checkSources(vs *virtualService) {
	if len(vs.meshHosts()) == 0 || p.pilot().VirtualServiceDefaults {
		return
	}
	limited := false
	for _, r := range p.httpRoutesOf(vs) {
		for _, m := range r.matches {
			if !vs.serves(m.gateways, meshGateway) {
				continue
			}
			if limited = true; m.source == nil {
				return
			}
		}
	}
	if limited {
		p.notHonoured(diag.CallersUnlimited, vs.ref, "spec.http", "callers that match no sourceLabels or sourceNamespace are not refused: their requests go to the service that they name; end with a route for all callers, such as a directResponse of 403, to refuse them")
	}
}

// checkHost reports a host for which the VirtualService has no effect.
func (d *check) checkHost(vs *virtualService, at, name string) {
	host := d.complete(name, vs.ref.Namespace)
	d.checkShortName(vs.ref, at, name, host)
	wildcard := strings.HasPrefix(host, "*")
	undeclared := d.service(host) == nil && !(wildcard && d.standsForSome(host))
	if undeclared && !d.checkUndeclared(vs, at, host) {
		return
	}
	callers := d.checkTaken(vs, at, host)
	if callers == nil {
		return
	}
	follows := d.plan.from(callers)
	if wildcard && follows.checkConnectionsTaken(vs, at, host) {
		return
	}
	d.checkClaim(vs, at, host)
	if undeclared {
		d.checkNobodysHost(vs, at, host)
	}
	follows.checkRouteRulesTaken(vs, host)
	if wildcard {
		follows.checkTakenBeneath(vs, at, host)
	}
}

// checkRouteRulesTaken reports the RouteRules that the VirtualService replaces.
func (d *check) checkRouteRulesTaken(vs *virtualService, host string) {
	rules := d.rulesFor.under(d.reader, host)
	if strings.HasPrefix(host, "*") {
		rules = slices.DeleteFunc(slices.Clone(d.rulesUnder.under(d.reader, host)), func(rule *routeRule) bool {
			return d.service(rule.host) == nil || d.virtualFor(rule.host) != vs
		})
	}
	for _, rule := range rules {
		d.conflict(diag.RuleClaimed, rule.ref, "spec.destination", fmt.Sprintf("the rule has no effect: %s is for the same host, and replaces all its RouteRules", vs.ref))
	}
}

// standsForSome reports whether these callers see a service whose host a wildcard
// covers.
func (v *viewpoint) standsForSome(wildcard string) bool {
	visible := func(svc *mesh.Service) bool { return svc.VisibleIn(v.namespace) }
	return slices.ContainsFunc(v.registry.beneath.under(v.reader, wildcard), visible) ||
		slices.ContainsFunc(v.egressServices(), func(svc *mesh.Service) bool { return imported{host: wildcard}.covers(svc.Hostname) })
}

// checkShortName reports a name that means different services to different callers.
func (d *check) checkShortName(ref diag.Ref, at, name, host string) {
	if name == host || !d.pilot().ShortNamesByCaller {
		return
	}
	for _, svc := range d.registry.namesakes.under(d.reader, name) {
		if svc.Hostname != host {
			d.notHonoured(diag.OtherPerCaller, ref, at, fmt.Sprintf("for callers of other namespaces this name means a service of their own, such as %s; write %s, or %s",
				svc.Hostname, host, switchHint("shortNamesByCaller", "it is that for all")))
			return
		}
	}
}

// checkEdges reports what is lost at gateways, which have no instances of their
// own.
func (p *plan) checkEdges(vs *virtualService) {
	if len(vs.gatewayNames()) == 0 {
		return
	}
	for _, r := range vs.http {
		if len(r.spec.GetMatch()) > 0 && p.pilot().EdgeMatchesLost {
			p.notHonoured(diag.AsPilot, vs.ref, r.field+".match", "gateways leave out routes that have a match; "+switchHint("edgeMatchesLost", "they do not"))
		}
		if r.route.Fault != nil && p.pilot().EdgeFaultsLost {
			p.notHonoured(diag.AsPilot, vs.ref, r.field+".fault", "gateways inject no fault; "+switchHint("edgeFaultsLost", "they do"))
		}
	}
}
