package compile

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// destinationRule is a DestinationRule. A viewpoint decides which ones apply to a
// host, as that depends on how names are completed.
type destinationRule struct {
	declared
	spec     *networking.DestinationRule
	exported []string
	labels   mesh.Labels // labels of the callers in its namespace that it selects; nil for all that see it
	// In a merged rule, with names the rules, other than the first, that
	// contributed to it, and policyRef the rule whose policy it has.
	with      []diag.Ref
	policyRef diag.Ref
}

// refs returns the rules that contributed to it, or only itself if it was not
// merged.
func (r *destinationRule) refs() []diag.Ref { return append([]diag.Ref{r.ref}, r.with...) }

func (r *destinationRule) origin() declared   { return r.declared }
func (r *destinationRule) exportTo() []string { return r.exported }
func (r *destinationRule) hosts() []string    { return []string{r.spec.GetHost()} }

func (r *destinationRule) selector() mesh.Labels { return r.labels }

func readDestinationRule(p *plan, of declared, spec *networking.DestinationRule) *destinationRule {
	return &destinationRule{declared: of, spec: spec, exported: p.settings.ExportToOf(spec), labels: selectorOf(spec), policyRef: of.ref}
}

// closingDestinationRule returns a spec that closes the host of a rule whose spec
// does not decode or whose TLS settings are not known, as the rule may ask for TLS. It
// returns nil if the spec does not name a host.
func closingDestinationRule(o *schema.Object) any {
	var said struct {
		Host     string   `json:"host"`
		ExportTo []string `json:"exportTo"`
	}
	if err := json.Unmarshal(o.SpecJSON(), &said); err != nil || said.Host == "" {
		return nil
	}
	// No proxy supports this setting, so the host is closed.
	return &networking.DestinationRule{Host: said.Host, ExportTo: said.ExportTo, TrafficPolicy: &networking.TrafficPolicy{
		ProxyProtocol: &networking.TrafficPolicy_ProxyProtocol{},
	}}
}

// subset returns a subset by name, or nil if there is none or r is nil.
func (r *destinationRule) subset(name string) *networking.Subset {
	if r == nil {
		return nil
	}
	for _, s := range r.spec.GetSubsets() {
		if s.GetName() == name {
			return s
		}
	}
	return nil
}

// subset returns the labels of a subset of a host. ok is false if no rule defines
// the subset, so that no instance belongs to it.
func (v *viewpoint) subset(host, name string) (labels mesh.Labels, ok bool) {
	if name == "" {
		return nil, true
	}
	if s := v.ruleFor(host).subset(name); s != nil {
		return s.GetLabels(), true
	}
	return nil, v.pilot().UnknownSubsetIsAll
}

// policy returns the whole policy for a target, or nil.
func (r *destinationRule) policy(t target, pilot mesh.V1Compatibility) *networking.TrafficPolicy {
	policy := mergedPolicy(nil, r.spec.GetTrafficPolicy(), t.number)
	if own := r.subsetOf(t, pilot).GetTrafficPolicy(); own != nil {
		policy = mergedPolicy(policy, own, t.number)
		if pilot.SubsetsDropOutlierDetection {
			policy.OutlierDetection = mergedPolicy(nil, own, t.number).GetOutlierDetection()
		}
	}
	return policy
}

// subsetOf returns the subset of a target, or nil. A target that is a version by
// labels has the first subset with exactly these labels.
func (r *destinationRule) subsetOf(t target, pilot mesh.V1Compatibility) *networking.Subset {
	if t.subset != "" {
		return r.subset(t.subset)
	}
	for _, s := range r.spec.GetSubsets() {
		if labels := t.version.labels(); labels.Equal(s.GetLabels()) && (len(labels) > 0 || pilot.SubsetsByLabels) {
			return s
		}
	}
	return nil
}

// checkDestinationRule reports problems of a rule as proxies in its own namespace
// see it.
func (d *check) checkDestinationRule(rule *destinationRule) {
	host := d.complete(rule.spec.GetHost(), rule.ref.Namespace)
	d.checkShortName(rule.ref, "spec.host", rule.spec.GetHost(), host)
	for i, s := range rule.spec.GetSubsets() {
		at := fmt.Sprintf("spec.subsets[%d]", i)
		d.plan.checkLabels(rule.ref, at+".labels", host, s.GetLabels(), "so requests to the subset fail")
		if s.GetTrafficPolicy() != nil && s.GetTrafficPolicy().GetOutlierDetection() == nil &&
			rule.spec.GetTrafficPolicy().GetOutlierDetection() != nil && d.pilot().SubsetsDropOutlierDetection {
			d.notHonoured(diag.AsPilot, rule.ref, at+".trafficPolicy", "the subset has no outlier detection, because its own policy has none; "+
				switchHint("subsetsDropOutlierDetection", "that of the rule holds"))
		}
	}
	svc := d.service(host)
	d.checkPolicies(rule, svc)
	d.checkVersions(rule, host, svc)
	d.checkClaim(rule, "spec.host", host)
	d.checkTakenRule(rule, host)
	d.checkShadowed(rule, host)
	d.checkMergedRule(rule, host)
	switch {
	case svc == nil && !strings.HasPrefix(host, "*"):
		d.checkService(rule.ref, "spec.host", host, "so the rule has no effect")
	case svc != nil && svc.NamesExternal() && d.pilot().ExternalNamePoliciesIgnored:
		d.notHonoured(diag.AsPilot, rule.ref, "spec.host", "the rule has no effect on a service with an external name; "+switchHint("externalNamePoliciesIgnored", "it has"))
	}
}

// checkMergedRule reports the parts of a rule that are not followed because of
// other rules for the same host.
func (d *check) checkMergedRule(rule *destinationRule, host string) {
	m := d.exactRule(d.scopes(rule.ref.Namespace, "")[0], host)
	switch {
	case m == nil:
	case m.ref.Namespace != rule.ref.Namespace:
		d.conflict(diag.RuleClaimed, rule.ref, "spec.host", fmt.Sprintf("the rule has no effect: %s is for the same host and %s", m.ref, d.firstBecause()))
	default:
		for _, part := range m.lost[rule.ref] {
			d.conflict(diag.RuleClaimed, rule.ref, part.field, part.why)
		}
	}
}

// checkPolicies reports settings of ports that the service does not have, and TLS
// settings that cannot be met.
func (d *check) checkPolicies(rule *destinationRule, svc *mesh.Service) {
	rule.eachPolicy(func(at string, tls *networking.ClientTLSSettings, of *networking.TrafficPolicy_PortTrafficPolicy) {
		d.checkTLS(rule, at, tls, svc)
		number := int(of.GetPort().GetNumber())
		if of != nil && svc != nil && !slices.ContainsFunc(svc.Ports, func(p *mesh.Port) bool { return p.Number == number }) {
			d.notHonoured(diag.UnknownPort, rule.ref, at+".port.number", fmt.Sprintf("the settings have no effect: %s has no port %d", svc.Hostname, number))
		}
	})
}

// eachPolicy visits the places that have TLS settings: whole policies, and those of
// ports, which visit receives.
func (r *destinationRule) eachPolicy(visit func(at string, tls *networking.ClientTLSSettings, of *networking.TrafficPolicy_PortTrafficPolicy)) {
	within := func(at string, policy *networking.TrafficPolicy) {
		visit(at, policy.GetTls(), nil)
		for i, own := range policy.GetPortLevelSettings() {
			visit(fmt.Sprintf("%s.portLevelSettings[%d]", at, i), own.GetTls(), own)
		}
	}
	within("spec.trafficPolicy", r.spec.GetTrafficPolicy())
	for i, s := range r.spec.GetSubsets() {
		within(fmt.Sprintf("spec.subsets[%d].trafficPolicy", i), s.GetTrafficPolicy())
	}
}
