package compile

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// Ports of an ingress. They are also the names of its route tables.
const (
	ingressHTTP  = 80
	ingressHTTPS = 443
)

// ingressRule is a usable IngressRule.
type ingressRule struct {
	declared
	spec      *schema.IngressRule
	host      string // of the service
	authority string // "*" for any
	path      string // exact; if "", prefix applies
	prefix    string
	secret    string // "" for plain HTTP
	// closed is set if the rule has conditions that an ingress does not check. Its
	// requests get 503.
	closed bool
}

// match returns the rule's conditions on a request, except its authority.
func (r *ingressRule) match() ir.Match { return ir.Match{Path: r.path, Prefix: r.prefix} }

// table returns the port that the rule is for.
func (r *ingressRule) table() int {
	if r.secret != "" {
		return ingressHTTPS
	}
	return ingressHTTP
}

// readIngressRule closes rules with conditions on more than authority and path.
// Pilot silently dropped them.
func readIngressRule(p *plan, of declared, spec *schema.IngressRule) *ingressRule {
	if spec.Destination == nil {
		p.reportNoDestination(of.ref)
		return nil
	}
	rule := &ingressRule{
		declared: of, spec: spec, authority: "*", secret: spec.TLSSecret,
		host: p.hostname(spec.Destination, of.ref.Namespace),
	}
	known := p.knows(of, "spec.match")
	rule.closed = !p.ingressMatch(rule, spec.Match) || !known
	return rule
}

// checkIngressRule reports what the rule asks for and cannot get.
func (p *plan) checkIngressRule(rule *ingressRule) {
	if excess := p.excess(rule.declared); excess.Withheld() {
		p.reportExcess(excess, rule.ref, p.ingressCosts.costs.Get(p.r, rule), "its requests are answered with 503")
		return
	}
	svc := p.ingressService(rule)
	if svc == nil {
		if p.checkSeen(rule.ref, "spec.destination", rule.host, "so the rule answers 503") {
			p.notHonoured(diag.Closed, rule.ref, "spec.destination", fmt.Sprintf("the rule answers 503: ingresses do not follow EgressRules, and only an EgressRule opens %s for namespace %s", rule.host, rule.ref.Namespace))
		}
		return
	}
	if p.checkIngressPort(rule, svc); !rule.closed && ingressPort(rule, svc) != nil {
		p.checkIngress(rule, svc)
	}
}

// ingressService returns the service that the rule leads to, as its namespace sees
// it, or nil.
func (rd *reader) ingressService(rule *ingressRule) *mesh.Service {
	return rd.registeredIn(rule.ref.Namespace, rule.host)
}

// ingressPort returns the HTTP port that the rule leads to, or nil.
func ingressPort(rule *ingressRule, svc *mesh.Service) *mesh.Port {
	if port := askedPort(rule, svc); port != nil && port.Protocol.IsHTTP() {
		return port
	}
	return nil
}

func askedPort(rule *ingressRule, svc *mesh.Service) *mesh.Port {
	switch {
	case rule.spec.DestinationPort != nil:
		return svc.Port(int(*rule.spec.DestinationPort))
	case rule.spec.DestinationPortName != nil:
		return svc.PortByName(*rule.spec.DestinationPortName)
	}
	return nil
}

// checkIngressPort reports a port that does not exist or is not HTTP.
func (rp *reporter) checkIngressPort(rule *ingressRule, svc *mesh.Service) {
	at, wanted := "spec.destinationPort", "no port"
	switch {
	case rule.spec.DestinationPort != nil:
		wanted = fmt.Sprintf("port %d", *rule.spec.DestinationPort)
	case rule.spec.DestinationPortName != nil:
		at, wanted = "spec.destinationPortName", fmt.Sprintf("port %q", *rule.spec.DestinationPortName)
	}
	switch port := askedPort(rule, svc); {
	case port == nil:
		rp.report(diag.Problem{
			Severity: diag.Warning, Reason: diag.NoSuchReference, Code: diag.UnknownPort, Object: rule.ref, Field: at,
			Message: fmt.Sprintf("the rule answers 503: it names %s, which %s does not have", wanted, svc.Hostname),
		})
	case !port.Protocol.IsHTTP():
		rp.notHonoured(diag.WrongProtocol, rule.ref, at, fmt.Sprintf("the rule answers 503: %s of %s is %s; it must be HTTP, HTTP2 or GRPC",
			wanted, svc.Hostname, port.Protocol))
	}
}

// ingressMatch reads the rule's conditions. It reports whether an ingress can check
// all of them.
func (rp *reporter) ingressMatch(rule *ingressRule, m *schema.MatchCondition) bool {
	if m == nil {
		return true
	}
	whole := m.Source == nil && m.TCP == nil && m.UDP == nil
	if !whole {
		rp.notHonoured(diag.Closed, rule.ref, "spec.match", "requests that match the rest are answered with 503: an ingress does not know callers and does not compare addresses; use request")
	}
	if m.Request == nil {
		return whole
	}
	for _, name := range slices.Sorted(maps.Keys(m.Request.Headers)) {
		switch how := m.Request.Headers[name]; {
		case name == "authority" && how.Exact != nil:
			rule.authority = strings.TrimSuffix(*how.Exact, ".")
		case name == "uri" && how.Exact != nil:
			rule.path = *how.Exact
		case name == "uri" && how.Prefix != nil:
			rule.prefix = *how.Prefix
		default:
			rp.notHonoured(diag.Closed, rule.ref, "spec.match.request.headers", fmt.Sprintf(
				"requests that match the rest are answered with 503: the rule has a condition on %s that an ingress cannot follow; use an exact authority, and an exact or prefix uri", name))
			whole = false
		}
	}
	return whole
}

// ingressSecret returns the first secret by name, or "" if no rule has one.
func (rd *reader) ingressSecret() string {
	first := ""
	for _, rule := range rd.ingressRules.rules(rd) {
		if first == "" || rule.secret != "" && rule.secret < first {
			first = rule.secret
		}
	}
	return first
}
