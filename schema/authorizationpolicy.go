package schema

import (
	"fmt"
	"strconv"
	"strings"

	security "istio.io/api/security/v1beta1"

	"github.com/pilot-api/pilot-api/diag"
)

// KindAuthorizationPolicy is the kind of objects that allow, deny or audit calls to workloads.
const KindAuthorizationPolicy = "AuthorizationPolicy"

// MostConditions is the maximum number of values in the rules of an AuthorizationPolicy. A
// proxy may compare each of them with each request.
const MostConditions = 8192

func init() {
	register(&Kind{
		Group: securityGroup, Version: "v1", Served: securityVersions,
		Kind: KindAuthorizationPolicy, Plural: "authorizationpolicies", Singular: "authorizationpolicy",
		Dashed: "authorization-policy", ShortNames: []string{"ap"},
		Doc: "An AuthorizationPolicy says which requests and connections workloads accept. A policy with a selector is for the workloads of its namespace with these labels. A policy without a selector is for all workloads of its namespace or, in the root namespace of the mesh, of all namespaces. " +
			"A workload refuses all requests that match a DENY policy. If there are ALLOW policies for it, it also refuses all requests that match none of them.",
		Columns: []Column{
			stringColumn("Action", "What the proxy does with a request that matches a rule.", func(p *security.AuthorizationPolicy) string { return p.GetAction().String() }),
			stringColumn("Selector", "Labels of the workloads that it is for.", func(p *security.AuthorizationPolicy) string { return labelsText(p.GetSelector().GetMatchLabels()) }),
			wideColumn("Rules", "Number of rules.", func(p *security.AuthorizationPolicy) string { return strconv.Itoa(len(p.GetRules())) }),
		},
		selectable: []SelectableField{selectableText("spec.action", func(p *security.AuthorizationPolicy) string { return p.GetAction().String() })},
		spec:       inProto[security.AuthorizationPolicy](),
		check:      checkAs(checkAuthorizationPolicy),
	})
}

// checkAuthorizationPolicy applies the rules of Istio's admission check.
func checkAuthorizationPolicy(s *security.AuthorizationPolicy) diag.List {
	var p problems
	if s.GetTargetRef() != nil || len(s.GetTargetRefs()) > 0 {
		p.forbidden("spec.targetRefs", "is not supported: select workloads by their labels (selector)")
	}
	switch custom := s.GetAction() == security.AuthorizationPolicy_CUSTOM; {
	case custom && s.GetProvider().GetName() == "":
		p.required("spec.provider.name", "must be given for a CUSTOM policy")
	case !custom && s.GetProvider() != nil:
		p.forbidden("spec.provider", "is for CUSTOM policies only")
	}
	conditions := 0
	for i, r := range s.GetRules() {
		conditions += p.accessRule(indexField("spec.rules", i), r)
	}
	if conditions > MostConditions {
		p.invalidValue("spec.rules", fmt.Sprintf("%d values", conditions), fmt.Sprintf("may have at most %d values together: a proxy may compare each of them with each request", MostConditions))
	}
	return p.list
}

// accessRule checks a rule and returns how many values it has.
func (p *problems) accessRule(at string, r *security.Rule) (values int) {
	for i, f := range r.GetFrom() {
		values += p.accessSource(indexField(at+".from", i)+".source", f.GetSource())
	}
	for i, t := range r.GetTo() {
		values += p.accessOperation(indexField(at+".to", i)+".operation", t.GetOperation())
	}
	for i, c := range r.GetWhen() {
		values += p.accessCondition(indexField(at+".when", i), c)
	}
	return values
}

func (p *problems) accessSource(at string, s *security.Source) int {
	n := sizes(s.GetPrincipals(), s.GetNotPrincipals(), s.GetRequestPrincipals(), s.GetNotRequestPrincipals(), s.GetNamespaces(), s.GetNotNamespaces(),
		s.GetServiceAccounts(), s.GetNotServiceAccounts(), s.GetTrustDomains(), s.GetNotTrustDomains(), s.GetIpBlocks(), s.GetNotIpBlocks(), s.GetRemoteIpBlocks(), s.GetNotRemoteIpBlocks())
	if n == 0 {
		p.required(at, "must have a field: leave out from for any sender")
	}
	if sizes(s.GetServiceAccounts(), s.GetNotServiceAccounts()) > 0 && sizes(s.GetPrincipals(), s.GetNotPrincipals(), s.GetNamespaces(), s.GetNotNamespaces()) > 0 {
		p.forbidden(at+".serviceAccounts", "cannot be given together with principals or namespaces")
	}
	for _, list := range []struct {
		field  string
		values []string
	}{{"serviceAccounts", s.GetServiceAccounts()}, {"notServiceAccounts", s.GetNotServiceAccounts()}} {
		for i, account := range list.values {
			if strings.Contains(account, "*") || strings.Count(account, "/") > 1 {
				p.invalidValue(indexField(at+"."+list.field, i), account, "must be NAMESPACE/NAME or NAME, without *")
			}
		}
	}
	return n
}

func (p *problems) accessOperation(at string, o *security.Operation) int {
	n := sizes(o.GetHosts(), o.GetNotHosts(), o.GetPorts(), o.GetNotPorts(), o.GetMethods(), o.GetNotMethods(), o.GetPaths(), o.GetNotPaths())
	if n == 0 {
		p.required(at, "must have a field: leave out to for any request")
	}
	for _, list := range []struct {
		field  string
		values []string
	}{{"paths", o.GetPaths()}, {"notPaths", o.GetNotPaths()}} {
		for i, path := range list.values {
			if why := badPathTemplate(path); why != "" {
				p.invalidValue(indexField(at+"."+list.field, i), path, why)
			}
		}
	}
	return n
}

// badPathTemplate returns why a path with {*} or {**} is none that a proxy accepts; "" for
// others.
func badPathTemplate(path string) string {
	if !strings.ContainsAny(path, "{}") {
		return ""
	}
	if strings.Contains(strings.NewReplacer("{*}", "", "{**}", "").Replace(path), "*") {
		return "may have * or {*} and {**}, and not both"
	}
	rest := false
	for part := range strings.SplitSeq(path, "/") {
		switch {
		case part == "{**}" && rest:
			return "may have {**} once"
		case part == "{**}":
			rest = true
		case part == "{*}" && rest:
			return "may have no {*} after {**}"
		case part != "{*}" && strings.ContainsAny(part, "{}"):
			return "must have {*} or {**} as a whole part between slashes"
		}
	}
	return ""
}

// Attributes of conditions.
const (
	AttrHeaders         = "request.headers"
	AttrSourceIP        = "source.ip"
	AttrRemoteIP        = "remote.ip"
	AttrNamespace       = "source.namespace"
	AttrPrincipal       = "source.principal"
	AttrAccount         = "source.serviceAccount"
	AttrTrustDomain     = "source.trustDomain"
	AttrAuthPrincipal   = "request.auth.principal"
	AttrAuthAudiences   = "request.auth.audiences"
	AttrAuthPresenter   = "request.auth.presenter"
	AttrAuthClaims      = "request.auth.claims"
	AttrDestinationIP   = "destination.ip"
	AttrDestinationPort = "destination.port"
	AttrSNI             = "connection.sni"
	AttrFilter          = "experimental.envoy.filters."
)

func (p *problems) accessCondition(at string, c *security.Condition) int {
	n := sizes(c.GetValues(), c.GetNotValues())
	if n == 0 {
		p.required(at+".values", "must be given, unless notValues are")
	}
	name, _, indexed := strings.Cut(c.GetKey(), "[")
	indexed = indexed && strings.HasSuffix(c.GetKey(), "]") && !strings.HasSuffix(c.GetKey(), "[]")
	known := false
	switch {
	case name == AttrHeaders || name == AttrAuthClaims:
		known = indexed
	case strings.HasPrefix(c.GetKey(), AttrFilter):
		known = indexed
	default:
		switch c.GetKey() {
		case AttrSourceIP, AttrRemoteIP, AttrDestinationIP:
			known = true
			p.conditionBlocks(at, c)
		case AttrDestinationPort:
			known = true
			p.conditionPorts(at, c)
		case AttrNamespace, AttrPrincipal, AttrAccount, AttrTrustDomain, AttrAuthPrincipal, AttrAuthAudiences, AttrAuthPresenter, AttrSNI:
			known = true
		}
	}
	if !known {
		p.invalidValue(at+".key", c.GetKey(), "must be an attribute such as source.namespace, request.headers[NAME] or request.auth.claims[NAME]")
	}
	return n
}

// eachValue calls check with all values of a condition, and reports those that it refuses.
func (p *problems) eachValue(at string, c *security.Condition, ok func(string) bool, want string) {
	for _, list := range []struct {
		field  string
		values []string
	}{{"values", c.GetValues()}, {"notValues", c.GetNotValues()}} {
		for i, value := range list.values {
			if !ok(value) {
				p.invalidValue(indexField(at+"."+list.field, i), value, want)
			}
		}
	}
}

func (p *problems) conditionBlocks(at string, c *security.Condition) {
	p.eachValue(at, c, either(isIP, isCIDR), "must be "+formats["ip-subnet"].want)
}

func (p *problems) conditionPorts(at string, c *security.Condition) {
	p.eachValue(at, c, isPortNumber, "must be "+formats["port-number"].want)
}

func sizes(lists ...[]string) int {
	n := 0
	for _, list := range lists {
		n += len(list)
	}
	return n
}
