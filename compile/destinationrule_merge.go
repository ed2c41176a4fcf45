package compile

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilot-api/pilot-api/diag"
)

// mergedRule is the merged DestinationRules of a namespace for one host.
type mergedRule struct {
	*destinationRule
	lost map[diag.Ref][]lostPart
}

// lostPart is a part of a rule that is not followed because of another rule.
type lostPart struct{ field, why string }

// ruleFor returns the merged rule that applies to a host, or nil.
func (v *viewpoint) ruleFor(host string) *destinationRule {
	if m := find(v.settingsOf, v, host, v.ruleNamespaces(host), v.exactRule); m != nil {
		return m.destinationRule
	}
	return nil
}

// rulesKey identifies the DestinationRules of a namespace for exactly this host or
// wildcard, as seen by callers of a domain that the same rules select.
type rulesKey struct {
	namespace, host string
	domain          string
	selection       selection
}

// exactRule returns the merged rule, or nil.
func (v *viewpoint) exactRule(namespace, host string) *mergedRule {
	lists := v.settingsOf.lists(v, namespace, host)
	switch {
	case len(lists) == 0:
		return nil
	case len(lists) > 1 || len(lists[0]) > 1:
		return v.rulesAt.Get(v.r, rulesKey{namespace, host, v.domain, v.selection})
	case v.settingsOf.followed(v, lists[0][0]):
		return &mergedRule{destinationRule: lists[0][0]}
	}
	return nil
}

// mergedAt merges several rules. A rule that selects its callers replaces those
// that do not.
func (rd *reader) mergedAt(key rulesKey) *mergedRule {
	d := rd.forSelected(key.domain, key.selection)
	rules := rd.settingsOf.all(d, rd.settingsOf.lists(d, key.namespace, key.host))
	if len(rules) == 0 {
		return nil
	}
	first := rules[0]
	var names []string
	for _, rule := range rules {
		if rule.ref.Namespace == first.ref.Namespace && (rule.labels == nil) == (first.labels == nil) {
			names = append(names, rule.name())
		}
	}
	return rd.mergedRules.Get(rd.r, strings.Join(names, "\n"))
}

// name is the key by which the rule is indexed.
func (r *destinationRule) name() string { return r.ref.Namespace + "/" + r.ref.Name }

// mergeRules merges rules as Istio does: the subsets of all, the first of each
// name, and the first policy. In addition, no rule turns off the TLS that another
// one asks for. The names are joined by newlines.
func (p *plan) mergeRules(names string) *mergedRule {
	var rules []*destinationRule
	for name := range strings.SplitSeq(names, "\n") {
		rules = append(rules, p.ruleNamed.under(&p.reader, name)...)
	}
	if len(rules) == 1 {
		return &mergedRule{destinationRule: rules[0]}
	}
	own := *rules[0]
	own.spec = &networking.DestinationRule{Host: own.spec.GetHost()}
	m := &merging{plan: p, out: &own, subsets: map[string]*mergedSubset{}}
	for _, rule := range rules {
		m.add(rule)
	}
	m.keepTLS(rules)
	lost := m.lost(rules)
	for _, rule := range rules[1:] {
		if len(lost[rule.ref]) == 0 || m.takesFrom(rule) {
			own.with = append(own.with, rule.ref)
		}
	}
	return &mergedRule{&own, lost}
}

// merging is a merge in progress.
type merging struct {
	*plan
	out *destinationRule
	// policyOf is the rule whose policy applies, or nil.
	policyOf *destinationRule
	subsets  map[string]*mergedSubset
}

// mergedSubset is a subset and the rule that it comes from.
type mergedSubset struct {
	*networking.Subset
	from *networking.Subset
	rule *destinationRule
}

// add merges a rule. If the rule cannot be merged with the first, only its TLS
// settings are used.
func (m *merging) add(rule *destinationRule) {
	whole := m.out.mergesWith(rule)
	if policy := rule.spec.GetTrafficPolicy(); policy != nil {
		if m.policyOf == nil && whole {
			m.policyOf, m.out.policyRef = rule, rule.ref
			m.out.spec.TrafficPolicy = withTLSOf(policy, m.out.spec.GetTrafficPolicy())
		} else {
			m.out.spec.TrafficPolicy = withTLSOf(m.out.spec.GetTrafficPolicy(), policy)
		}
	}
	for _, s := range rule.spec.GetSubsets() {
		switch known := m.subsets[s.GetName()]; {
		case known == nil && whole:
			known = &mergedSubset{proto.CloneOf(s), s, rule}
			m.subsets[s.GetName()] = known
			m.out.spec.Subsets = append(m.out.spec.Subsets, known.Subset)
		case known != nil && known.rule != rule && s.GetTrafficPolicy() != nil:
			known.TrafficPolicy = withTLSOf(known.GetTrafficPolicy(), s.GetTrafficPolicy())
		}
	}
}

// takesFrom reports whether the result has the policy or a subset of a rule, or may
// have its TLS settings. A rule that contributes nothing is not an origin of the
// result.
func (m *merging) takesFrom(rule *destinationRule) bool {
	if rule == m.policyOf || asksForTLS(rule.spec.GetTrafficPolicy()) {
		return true
	}
	return slices.ContainsFunc(rule.spec.GetSubsets(), func(s *networking.Subset) bool {
		known := m.subsets[s.GetName()]
		return known != nil && known.rule == rule || asksForTLS(s.GetTrafficPolicy())
	})
}

// asksForTLS reports whether a policy has TLS settings, for any port.
func asksForTLS(policy *networking.TrafficPolicy) bool {
	return slices.ContainsFunc(append(portsOf(policy), 0), func(port int) bool { return tlsAt(policy, port) != nil })
}

// mergesWith reports whether two rules are for the same callers.
func (r *destinationRule) mergesWith(other *destinationRule) bool {
	return r.labels.Equal(other.labels) && slices.Equal(r.audience(), other.audience())
}

// audience returns exportTo in a normal form.
func (r *destinationRule) audience() []string {
	if len(r.exported) == 0 || slices.Contains(r.exported, "*") {
		return nil
	}
	out := slices.Clone(r.exported)
	for i, namespace := range out {
		if namespace == "." {
			out[i] = r.ref.Namespace
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// keepTLS adds TLS settings from the policies of other rules to subsets that turn TLS
// off, or whose settings for a port do not mention it. Within one rule, such settings
// replace the policy's TLS, and the author can see that; across rules they cannot.
func (m *merging) keepTLS(rules []*destinationRule) {
	for _, s := range m.subsets {
		for _, rule := range rules {
			if s.rule != rule && s.TrafficPolicy != nil {
				m.keepTLSOf(rule.spec.GetTrafficPolicy(), s.TrafficPolicy)
			}
		}
	}
}

// keepTLSOf adds the TLS settings of a policy to the policy of a subset.
func (m *merging) keepTLSOf(policy, subset *networking.TrafficPolicy) {
	known := portsOf(subset)
	for _, own := range subset.GetPortLevelSettings() {
		own.Tls = encrypted(own.Tls, tlsAt(policy, int(own.GetPort().GetNumber())))
	}
	if subset.Tls == nil {
		return // It inherits those of all rules.
	}
	for _, port := range portsOf(policy) {
		if tls := encrypted(subset.Tls, tlsAt(policy, port)); tls != subset.Tls && !slices.Contains(known, port) {
			all := mergedPolicy(mergedPolicy(nil, m.out.spec.GetTrafficPolicy(), port), subset, port)
			subset.PortLevelSettings = append(subset.PortLevelSettings, &networking.TrafficPolicy_PortTrafficPolicy{
				Port:         &networking.PortSelector{Number: uint32(port)},
				LoadBalancer: all.GetLoadBalancer(), ConnectionPool: all.GetConnectionPool(), OutlierDetection: all.GetOutlierDetection(),
				Tls: tls,
			})
		}
	}
	subset.Tls = encrypted(subset.Tls, policy.GetTls())
}

const noPlainText = "it does not turn off TLS: another DestinationRule for the same host asks for it"

// lost returns the parts of the rules that are not followed.
func (m *merging) lost(rules []*destinationRule) map[diag.Ref][]lostPart {
	out := map[diag.Ref][]lostPart{}
	for _, rule := range rules {
		lose := func(field, why string) { out[rule.ref] = append(out[rule.ref], lostPart{field, why}) }
		onlyTLS := func(of *destinationRule, has string) string {
			return fmt.Sprintf("only the TLS settings have effect: %s %s and %s", of.ref, has, m.firstBecause())
		}
		switch whole := followsPolicy(m.out.spec.GetTrafficPolicy(), rule.spec.GetTrafficPolicy()); {
		case !m.out.mergesWith(rule):
			lose("spec.host", onlyTLS(m.out, "has the same host and other callers, so the two are not merged,"))
			continue
		case whole:
		case rule == m.policyOf:
			lose("spec.trafficPolicy", noPlainText)
		default:
			lose("spec.trafficPolicy", onlyTLS(m.policyOf, "has a policy for the same host,"))
		}
		for i, s := range rule.spec.GetSubsets() {
			known, field := m.subsets[s.GetName()], fmt.Sprintf("spec.subsets[%d]", i)
			whole := followsPolicy(known.GetTrafficPolicy(), s.GetTrafficPolicy())
			switch {
			case known.from == s && !whole:
				lose(field+".trafficPolicy", noPlainText)
			case known.rule != rule && !(whole && maps.Equal(known.GetLabels(), s.GetLabels())):
				lose(field, onlyTLS(known.rule, "has the subset too,"))
			}
		}
	}
	return out
}

// withTLSOf returns a policy that takes its TLS, tunnel and proxy protocol settings
// from another one wherever it has none. Both may be nil.
func withTLSOf(own, other *networking.TrafficPolicy) *networking.TrafficPolicy {
	if other == nil {
		return own
	}
	out := &networking.TrafficPolicy{}
	if own != nil {
		out = proto.CloneOf(own)
	}
	out.Tls = encrypted(own.GetTls(), other.GetTls())
	out.Tunnel = cmp.Or(own.GetTunnel(), other.GetTunnel())
	out.ProxyProtocol = cmp.Or(own.GetProxyProtocol(), other.GetProxyProtocol())
	for _, port := range portsOf(own, other) {
		tls := encrypted(tlsAt(own, port), tlsAt(other, port))
		if proto.Equal(tlsAt(out, port), tls) {
			continue
		}
		at := slices.IndexFunc(out.GetPortLevelSettings(), func(s *networking.TrafficPolicy_PortTrafficPolicy) bool {
			return int(s.GetPort().GetNumber()) == port
		})
		if at < 0 {
			at = len(out.GetPortLevelSettings())
			out.PortLevelSettings = append(out.PortLevelSettings, &networking.TrafficPolicy_PortTrafficPolicy{
				Port:         &networking.PortSelector{Number: uint32(port)},
				LoadBalancer: own.GetLoadBalancer(), ConnectionPool: own.GetConnectionPool(), OutlierDetection: own.GetOutlierDetection(),
			})
		}
		out.PortLevelSettings[at].Tls = tls
	}
	return out
}

// encrypted returns the first of two settings that encrypts connections, else the
// first that is set.
func encrypted(own, other *networking.ClientTLSSettings) *networking.ClientTLSSettings {
	encrypts := func(tls *networking.ClientTLSSettings) bool {
		return tls != nil && tls.GetMode() != networking.ClientTLSSettings_DISABLE
	}
	if !encrypts(own) && encrypts(other) {
		return other
	}
	return cmp.Or(own, other)
}

// tlsAt returns the TLS settings of a policy for a port.
func tlsAt(policy *networking.TrafficPolicy, port int) *networking.ClientTLSSettings {
	return mergedPolicy(nil, policy, port).GetTls()
}

// portsOf returns the ports for which any of the policies has settings, each once.
func portsOf(policies ...*networking.TrafficPolicy) []int {
	var out []int
	for _, policy := range policies {
		for _, s := range policy.GetPortLevelSettings() {
			out = append(out, int(s.GetPort().GetNumber()))
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// followsPolicy reports whether out contains all settings of a policy.
func followsPolicy(out, policy *networking.TrafficPolicy) bool {
	if policy == nil {
		return true
	}
	for _, port := range append(portsOf(out, policy), 0) {
		has, asks := mergedPolicy(nil, out, port), mergedPolicy(nil, policy, port)
		if !holds(has.GetLoadBalancer(), asks.GetLoadBalancer()) || !holds(has.GetConnectionPool(), asks.GetConnectionPool()) ||
			!holds(has.GetOutlierDetection(), asks.GetOutlierDetection()) || !holds(has.GetTls(), asks.GetTls()) ||
			!holds(has.GetTunnel(), asks.GetTunnel()) || !holds(has.GetProxyProtocol(), asks.GetProxyProtocol()) {
			return false
		}
	}
	return true
}

// holds reports whether a part of a policy is unset or equals another.
func holds[T interface {
	comparable
	proto.Message
}](has, asks T) bool {
	var none T
	return asks == none || proto.Equal(has, asks)
}
