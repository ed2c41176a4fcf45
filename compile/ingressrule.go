package compile

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// Ports of an ingress, which are also the names of its route tables.
const (
	ingressHTTP  = 80
	ingressHTTPS = 443
)

// ingressRule is an IngressRule that can be used.
type ingressRule struct {
	ref       diag.Ref
	service   *mesh.Service
	port      *mesh.Port
	authority string // "*" for any
	path      string // exact; "": see prefix
	prefix    string
	secret    string // "": plain HTTP
	// closed: the rule cannot act as written, and its requests get 503.
	closed bool
}

// match is what the rule asks of a request, but for its authority.
func (r *ingressRule) match() ir.Match { return ir.Match{Path: r.path, Prefix: r.prefix} }

// table is the port that the rule is for.
func (r *ingressRule) table() int {
	if r.secret != "" {
		return ingressHTTPS
	}
	return ingressHTTP
}

// planIngressRules closes rules that ask for more than authority and path, or
// for a port that is not there: Pilot left them out without a word.
func (p *plan) planIngressRules() {
	specs(p, "IngressRule", func(o *schema.Object, spec *schema.IngressRule) {
		if spec.Destination == nil {
			p.reportNoDestination(o)
			return
		}
		rule := &ingressRule{ref: o.Key().Ref(), authority: "*", secret: spec.TLSSecret}
		host := p.hostname(spec.Destination, o.Meta.Namespace)
		rule.service = cmp.Or(p.snap.ServiceIn(o.Meta.Namespace, host), p.snap.Service(host))
		asked := p.ingressMatch(rule, spec.Match)
		there := rule.service != nil && p.ingressPort(rule, spec)
		if rule.service == nil {
			p.checkService(rule.ref, "spec.destination", host, "so the rule answers 503")
		}
		rule.closed = !asked || !there
		p.ingress = append(p.ingress, rule)
		if !rule.closed {
			p.checkIngress(rule)
		}
	})
	p.checkSecrets()
	p.checkEdgeFaults()
}

func (p *plan) ingressPort(rule *ingressRule, spec *schema.IngressRule) bool {
	at, wanted := "spec.destinationPort", "no port"
	switch {
	case spec.DestinationPort != nil:
		wanted = fmt.Sprintf("port %d", *spec.DestinationPort)
		rule.port = rule.service.Port(int(*spec.DestinationPort))
	case spec.DestinationPortName != nil:
		at, wanted = "spec.destinationPortName", fmt.Sprintf("port %q", *spec.DestinationPortName)
		rule.port = rule.service.PortByName(*spec.DestinationPortName)
	}
	switch {
	case rule.port == nil:
		p.report(diag.Problem{
			Severity: diag.Warning, Reason: diag.NoSuchReference, Object: rule.ref, Field: at,
			Message: fmt.Sprintf("the rule answers 503: it names %s, and %s has none such", wanted, rule.service.Hostname),
		})
		return false
	case !rule.port.Protocol.IsHTTP():
		p.notHonoured(rule.ref, at, fmt.Sprintf("the rule answers 503: %s of %s is %s; it must be HTTP, HTTP2 or GRPC",
			wanted, rule.service.Hostname, rule.port.Protocol))
		return false
	}
	return true
}

// ingressMatch reports whether the rule asks for no more than an ingress looks at.
func (p *plan) ingressMatch(rule *ingressRule, m *schema.MatchCondition) bool {
	if m == nil {
		return true
	}
	whole := m.Source == nil && m.TCP == nil && m.UDP == nil
	if !whole {
		p.notHonoured(rule.ref, "spec.match", "requests that fit the rest are answered with 503: an ingress knows no callers, and looks at no addresses; use request")
	}
	if m.Request == nil {
		return whole
	}
	for _, name := range slices.Sorted(maps.Keys(m.Request.Headers)) {
		switch how := m.Request.Headers[name]; {
		case name == "authority" && how.Exact != nil:
			rule.authority = *how.Exact
		case name == "uri" && how.Exact != nil:
			rule.path = *how.Exact
		case name == "uri" && how.Prefix != nil:
			rule.prefix = *how.Prefix
		default:
			p.notHonoured(rule.ref, "spec.match.request.headers", fmt.Sprintf(
				"requests that fit the rest are answered with 503: of %s the rule asks what an ingress does not look at; use an exact authority, and an exact or prefix uri", name))
			whole = false
		}
	}
	return whole
}

// ingressSecret is the first secret by name, "" when no rule has one.
func (p *plan) ingressSecret() string {
	first := ""
	for _, rule := range p.ingress {
		if first == "" || rule.secret != "" && rule.secret < first {
			first = rule.secret
		}
	}
	return first
}
