package compile

import (
	"cmp"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"

	security "istio.io/api/security/v1beta1"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// authorizationPolicy is an AuthorizationPolicy as read from its object.
type authorizationPolicy struct {
	declared
	selector mesh.Labels
	action   security.AuthorizationPolicy_Action
	dryRun   bool
	// http are its rules for requests, and tcp those for connections. Rules that fit nothing
	// are left out.
	http, tcp []ir.AccessPolicy
}

// dryRunAnnotation makes a policy count only, as in Istio.
const dryRunAnnotation = "istio.io/dry-run"

func readAuthorizationPolicy(p *plan, of declared, spec *security.AuthorizationPolicy) *authorizationPolicy {
	out := &authorizationPolicy{
		declared: of, selector: spec.GetSelector().GetMatchLabels(), action: spec.GetAction(),
		dryRun: of.object.Meta.Annotations[dryRunAnnotation] == "true",
	}
	denies := out.action == security.AuthorizationPolicy_DENY || out.action == security.AuthorizationPolicy_CUSTOM
	for i, r := range spec.GetRules() {
		read := accessRule{namespace: of.ref.Namespace, denies: denies}
		rule := ir.AccessPolicy{
			Name: fmt.Sprintf("ns[%s]-policy[%s]-rule[%d]", of.ref.Namespace, of.ref.Name, i),
			Peer: read.peer(r), Operation: read.operation(r), Origins: []diag.Ref{of.ref},
		}
		out.http = append(out.http, rule)
		if overTCP, ok := connectionRule(rule, denies); ok {
			out.tcp = append(out.tcp, overTCP)
		}
	}
	byName := func(a, b ir.AccessPolicy) int { return cmp.Compare(a.Name, b.Name) }
	slices.SortFunc(out.http, byName)
	slices.SortFunc(out.tcp, byName)
	if out.action == security.AuthorizationPolicy_CUSTOM {
		p.notHonoured(diag.NotFollowed, of.ref, "spec.action", "requests that match its rules are refused: proxies cannot ask an external authorizer")
	}
	return out
}

// allowNothing is the spec of an AuthorizationPolicy that cannot be read.
func allowNothing(*schema.Object) any { return &security.AuthorizationPolicy{} }

// connectionRule returns a rule for connections without HTTP. A rule that needs HTTP fits no
// connection. One that denies is without its conditions on HTTP, so it denies more.
func connectionRule(rule ir.AccessPolicy, denies bool) (ir.AccessPolicy, bool) {
	needsHTTP := false
	for _, c := range []*ir.Condition{&rule.Peer, &rule.Operation} {
		c.EachTest(func(t *ir.Test) { needsHTTP = needsHTTP || t.Attribute.IsHTTP() })
	}
	if !needsHTTP {
		return rule, true
	}
	if !denies {
		return rule, false
	}
	rule.Peer, rule.Operation = withoutHTTP(rule.Peer), withoutHTTP(rule.Operation)
	return rule, true
}

// withoutHTTP returns a condition without the fields on HTTP. A field is an entry of a list of
// alternatives, or of conditions that all hold; a list of alternatives that has lost some is
// no condition any more.
func withoutHTTP(c ir.Condition) ir.Condition {
	switch {
	case c.Test != nil && c.Test.Attribute.IsHTTP():
		return ir.Condition{}
	case c.Not != nil:
		inner := withoutHTTP(*c.Not)
		if inner.IsTrue() {
			return ir.Condition{}
		}
		return ir.Condition{Not: &inner}
	case len(c.All) > 0:
		var kept []ir.Condition
		for _, one := range c.All {
			if one = withoutHTTP(one); !one.IsTrue() {
				kept = append(kept, one)
			}
		}
		return all(kept...)
	case len(c.Any) > 0:
		var kept []ir.Condition
		for _, one := range c.Any {
			if one = withoutHTTP(one); one.IsTrue() {
				return ir.Condition{}
			}
			kept = append(kept, one)
		}
		return ir.Condition{Any: kept}
	}
	return c
}

// all returns a condition that holds if all others do.
func all(conditions ...ir.Condition) ir.Condition {
	switch len(conditions) {
	case 0:
		return ir.Condition{}
	case 1:
		return conditions[0]
	}
	return ir.Condition{All: conditions}
}

// accessRule turns the fields of a rule into conditions.
type accessRule struct {
	namespace string // of the policy
	denies    bool
}

// peer returns the condition on the sender: the sources, and the keys of when that are about
// it.
func (r accessRule) peer(rule *security.Rule) ir.Condition {
	var conditions []ir.Condition
	if from := rule.GetFrom(); len(from) > 0 {
		var any []ir.Condition
		for _, f := range from {
			any = append(any, r.source(f.GetSource()))
		}
		conditions = append(conditions, anyOf(any))
	}
	for _, c := range rule.GetWhen() {
		if _, peer := r.tests(c.GetKey()); peer {
			conditions = append(conditions, r.when(c)...)
		}
	}
	return all(conditions...)
}

func (r accessRule) operation(rule *security.Rule) ir.Condition {
	var conditions []ir.Condition
	if to := rule.GetTo(); len(to) > 0 {
		var any []ir.Condition
		for _, t := range to {
			any = append(any, r.requested(t.GetOperation()))
		}
		conditions = append(conditions, anyOf(any))
	}
	for _, c := range rule.GetWhen() {
		if _, peer := r.tests(c.GetKey()); !peer {
			conditions = append(conditions, r.when(c)...)
		}
	}
	return all(conditions...)
}

// anyOf returns a condition that holds if one of the others does.
func anyOf(conditions []ir.Condition) ir.Condition {
	for _, c := range conditions {
		if c.IsTrue() {
			return ir.Condition{}
		}
	}
	if len(conditions) == 1 {
		return conditions[0]
	}
	return ir.Condition{Any: append([]ir.Condition{}, conditions...)}
}

func (r accessRule) source(s *security.Source) ir.Condition {
	return all(slices.Concat(
		r.values(testPrincipal, s.GetPrincipals(), s.GetNotPrincipals()),
		r.values(testRequestPrincipal, s.GetRequestPrincipals(), s.GetNotRequestPrincipals()),
		r.values(testNamespace, s.GetNamespaces(), s.GetNotNamespaces()),
		r.values(r.testAccount, s.GetServiceAccounts(), s.GetNotServiceAccounts()),
		r.values(testTrustDomain, s.GetTrustDomains(), s.GetNotTrustDomains()),
		r.values(testBlock(ir.AttrPeerAddress), s.GetIpBlocks(), s.GetNotIpBlocks()),
		r.values(testBlock(ir.AttrClientAddress), s.GetRemoteIpBlocks(), s.GetNotRemoteIpBlocks()),
	)...)
}

func (r accessRule) requested(o *security.Operation) ir.Condition {
	return all(slices.Concat(
		r.values(testHost, o.GetHosts(), o.GetNotHosts()),
		r.values(testPort, o.GetPorts(), o.GetNotPorts()),
		r.values(testText(ir.Test{Attribute: ir.AttrMethod}), o.GetMethods(), o.GetNotMethods()),
		r.values(testPath, o.GetPaths(), o.GetNotPaths()),
	)...)
}

// when returns the conditions of a key.
func (r accessRule) when(c *security.Condition) []ir.Condition {
	test, _ := r.tests(c.GetKey())
	return r.values(test, c.GetValues(), c.GetNotValues())
}

// values returns the condition that a test holds for one of some values, and for none of
// others.
func (r accessRule) values(test func(string) ir.Condition, values, notValues []string) []ir.Condition {
	each := func(list []string) ir.Condition {
		var out []ir.Condition
		for _, v := range list {
			out = append(out, test(v))
		}
		if len(out) == 1 {
			return out[0]
		}
		return ir.Condition{Any: out}
	}
	var out []ir.Condition
	if len(values) > 0 {
		out = append(out, each(values))
	}
	if len(notValues) > 0 {
		not := each(notValues)
		out = append(out, ir.Condition{Not: &not})
	}
	return out
}

// tests returns the test of a key of when, and whether it is about the sender. A key that is
// not known never fits in a rule that allows, and always in one that denies.
func (r accessRule) tests(key string) (test func(string) ir.Condition, peer bool) {
	name, rest, _ := strings.Cut(key, "[")
	inside := strings.TrimSuffix(rest, "]")
	switch name {
	case schema.AttrHeaders:
		return testText(ir.Test{Attribute: ir.AttrHeader, Name: strings.ToLower(inside)}), true
	case schema.AttrAuthClaims:
		return testText(ir.Test{Attribute: ir.AttrClaim, Path: strings.Split(inside, "][")}), true
	}
	if filter, ok := strings.CutPrefix(name, schema.AttrFilter); ok {
		return testText(ir.Test{Attribute: ir.AttrFilterMetadata, Name: "envoy.filters." + filter, Path: strings.Split(inside, "][")}), false
	}
	switch key {
	case schema.AttrSourceIP:
		return testBlock(ir.AttrPeerAddress), true
	case schema.AttrRemoteIP:
		return testBlock(ir.AttrClientAddress), true
	case schema.AttrNamespace:
		return testNamespace, true
	case schema.AttrPrincipal:
		return testPrincipal, true
	case schema.AttrAccount:
		return r.testAccount, true
	case schema.AttrTrustDomain:
		return testTrustDomain, true
	case schema.AttrAuthPrincipal:
		return testRequestPrincipal, true
	case schema.AttrAuthAudiences:
		return testText(ir.Test{Attribute: ir.AttrClaim, Path: []string{"aud"}}), true
	case schema.AttrAuthPresenter:
		return testText(ir.Test{Attribute: ir.AttrClaim, Path: []string{"azp"}}), true
	case schema.AttrDestinationIP:
		return testBlock(ir.AttrDestinationAddress), false
	case schema.AttrDestinationPort:
		return testPort, false
	case schema.AttrSNI:
		return testText(ir.Test{Attribute: ir.AttrServerName}), false
	}
	return func(string) ir.Condition {
		if r.denies {
			return ir.Condition{}
		}
		return ir.Condition{Never: true}
	}, true
}

// textTest returns the comparison of a value with *: any text, one that begins or ends with
// something, or exactly one.
func textTest(value string) ir.TextTest {
	switch {
	case value == "*":
		return ir.TextTest{Present: true}
	case strings.HasPrefix(value, "*"):
		return ir.TextTest{Suffix: value[1:]}
	case strings.HasSuffix(value, "*"):
		return ir.TextTest{Prefix: strings.TrimSuffix(value, "*")}
	}
	return ir.TextTest{Exact: value}
}

func testText(t ir.Test) func(string) ir.Condition {
	return func(value string) ir.Condition {
		one, text := t, textTest(value)
		one.Text = &text
		return ir.Condition{Test: &one}
	}
}

// spiffe begins the names of all peers.
const spiffe = "spiffe://"

func testPrincipal(value string) ir.Condition {
	text := textTest(value)
	switch {
	case text.Suffix != "":
		text = ir.TextTest{Regex: spiffe + ".*" + regexp.QuoteMeta(text.Suffix)}
	case text.Prefix != "":
		text.Prefix = spiffe + text.Prefix
	case text.Exact != "":
		text.Exact = spiffe + text.Exact
	}
	return ir.Condition{Test: &ir.Test{Attribute: ir.AttrPeerName, Text: &text}}
}

// wild returns a regular expression for a text in which * is any text.
func wild(value string) string {
	parts := strings.Split(value, "*")
	for i := range parts {
		parts[i] = regexp.QuoteMeta(parts[i])
	}
	return strings.Join(parts, ".*")
}

func testPeerName(regex string) ir.Condition {
	return ir.Condition{Test: &ir.Test{Attribute: ir.AttrPeerName, Text: &ir.TextTest{Regex: regex}}}
}

func testNamespace(value string) ir.Condition { return testPeerName(".*/ns/" + wild(value) + "/.*") }

func (r accessRule) testAccount(value string) ir.Condition {
	namespace, account, ok := strings.Cut(value, "/")
	if !ok {
		namespace, account = r.namespace, value
	}
	return testPeerName(spiffe + ".+/ns/" + regexp.QuoteMeta(namespace) + "/(.+/|)sa/" + regexp.QuoteMeta(account) + "(/.+)?")
}

func testTrustDomain(value string) ir.Condition {
	if strings.Contains(value, "*") {
		return testPeerName(spiffe + strings.ReplaceAll(wild(value), ".*", "[^/]*") + "/.*")
	}
	return ir.Condition{Test: &ir.Test{Attribute: ir.AttrPeerName, Text: &ir.TextTest{Prefix: spiffe + value + "/"}}}
}

// testRequestPrincipal tests ISSUER/SUBJECT. The issuer ends at the last slash.
func testRequestPrincipal(value string) ir.Condition {
	claim := func(name string, text ir.TextTest) ir.Condition {
		return ir.Condition{Test: &ir.Test{Attribute: ir.AttrClaim, Path: []string{name}, Text: &text}}
	}
	present := ir.TextTest{Present: true}
	if value == "*" {
		return all(claim("iss", present), claim("sub", present))
	}
	issuer, subject := value, ""
	slash := strings.LastIndexByte(value, '/')
	if slash >= 0 {
		issuer, subject = value[:slash], value[slash+1:]
	}
	switch {
	case strings.HasPrefix(value, "*"):
		if slash < 0 {
			return all(claim("iss", present), claim("sub", ir.TextTest{Suffix: value[1:]}))
		}
		return all(claim("iss", ir.TextTest{Suffix: issuer[1:]}), claim("sub", ir.TextTest{Exact: subject}))
	case strings.HasSuffix(value, "*"):
		if slash < 0 {
			return all(claim("iss", ir.TextTest{Prefix: strings.TrimSuffix(value, "*")}), claim("sub", present))
		}
		if subject == "*" {
			return all(claim("iss", ir.TextTest{Exact: issuer}), claim("sub", present))
		}
		return all(claim("iss", ir.TextTest{Exact: issuer}), claim("sub", ir.TextTest{Prefix: strings.TrimSuffix(subject, "*")}))
	}
	return all(claim("iss", ir.TextTest{Exact: issuer}), claim("sub", ir.TextTest{Exact: subject}))
}

func testBlock(of ir.Attribute) func(string) ir.Condition {
	return func(value string) ir.Condition {
		if address, err := netip.ParseAddr(value); err == nil {
			value = netip.PrefixFrom(address, address.BitLen()).String()
		}
		return ir.Condition{Test: &ir.Test{Attribute: of, Block: value}}
	}
}

func testPort(value string) ir.Condition {
	port, _ := strconv.Atoi(value) // Schema has checked it.
	return ir.Condition{Test: &ir.Test{Attribute: ir.AttrDestinationPort, Port: port}}
}

// testHost tests a host in any case. A host without a port is also the one with a port.
func testHost(value string) ir.Condition {
	text := textTest(value)
	text.IgnoreCase = !text.Present
	switch bare := strings.ToLower(value); {
	case text.Present, text.Prefix != "", strings.Contains(value, ":"):
	case text.Suffix != "":
		text = ir.TextTest{Regex: "(?i).*" + regexp.QuoteMeta(bare[1:]) + "(:[0-9]+)?"}
	default:
		text = ir.TextTest{Regex: "(?i)" + regexp.QuoteMeta(bare) + "(:[0-9]+)?"}
	}
	return ir.Condition{Test: &ir.Test{Attribute: ir.AttrHost, Text: &text}}
}

func testPath(value string) ir.Condition {
	text := textTest(value)
	if strings.Contains(value, "{") {
		text = ir.TextTest{Template: value}
	}
	return ir.Condition{Test: &ir.Test{Attribute: ir.AttrPath, Text: &text}}
}

// accessOf returns who may call the workload of a proxy, nil for everybody. http is set for
// requests, and not for connections.
func (p *plan) accessOf(who *caller, http bool) *ir.Access {
	out := &ir.Access{}
	for _, step := range []struct {
		action security.AuthorizationPolicy_Action
		as     ir.AccessAction
	}{
		{security.AuthorizationPolicy_AUDIT, ir.Audit}, {security.AuthorizationPolicy_CUSTOM, ir.Deny},
		{security.AuthorizationPolicy_DENY, ir.Deny}, {security.AuthorizationPolicy_ALLOW, ir.Allow},
	} {
		for _, dryRun := range []bool{false, true} {
			p.addStep(out, who, step.action, ir.AccessStep{Action: step.as, DryRun: dryRun}, http)
		}
	}
	if len(out.Steps) == 0 {
		return nil
	}
	return out
}

// addStep adds a step with the policies of an action, if there are any.
func (p *plan) addStep(to *ir.Access, who *caller, action security.AuthorizationPolicy_Action, step ir.AccessStep, http bool) {
	found := false
	for _, policy := range p.policiesOf(who) {
		if policy.action != action || policy.dryRun != step.DryRun {
			continue
		}
		found = true
		rules := policy.tcp
		if http {
			rules = policy.http
		}
		step.Policies = append(step.Policies, rules...)
	}
	if !found || len(step.Policies) == 0 && action != security.AuthorizationPolicy_ALLOW {
		return
	}
	slices.SortFunc(step.Policies, func(a, b ir.AccessPolicy) int { return cmp.Compare(a.Name, b.Name) })
	for i := range step.Policies {
		step.Policies[i].Operation.EachTest(func(t *ir.Test) { to.Paths = to.Paths || t.Attribute == ir.AttrPath })
	}
	to.Steps = append(to.Steps, step)
}

// policiesOf returns the policies for the workload of a proxy: those of the root namespace and
// of its own.
func (p *plan) policiesOf(who *caller) []*authorizationPolicy {
	var out []*authorizationPolicy
	namespaces := []string{p.settings.RootNamespace, who.namespace}
	for _, namespace := range slices.Compact(namespaces) {
		for _, policy := range p.policiesIn.under(&p.reader, namespace) {
			if who.bears(policy.selector) {
				out = append(out, policy)
			}
		}
	}
	return out
}
