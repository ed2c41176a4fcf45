package compile

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/mesh"
)

// selection are the names of the DestinationRules that select proxies by their
// labels, all of the proxies' namespace, joined by line ends, which none has.
type selection string

func (s selection) has(name string) bool {
	for known := range strings.SplitSeq(string(s), "\n") {
		if known == name {
			return true
		}
	}
	return false
}

func selectionOf(rules []*destinationRule) selection {
	var names []string
	for _, rule := range rules {
		names = append(names, rule.ref.Name)
	}
	return selection(strings.Join(names, "\n"))
}

// selectorOf is nil where there is none. One without labels selects all callers of
// the namespace.
func selectorOf(spec *networking.DestinationRule) mesh.Labels {
	if spec.GetWorkloadSelector() == nil {
		return nil
	}
	labels := mesh.Labels{}
	maps.Copy(labels, spec.GetWorkloadSelector().GetMatchLabels())
	return labels
}

// selectsIn is the namespace whose proxies the rule selects; none for a rule
// without a selector.
func (r *destinationRule) selectsIn() []string {
	if r.labels == nil {
		return nil
	}
	return []string{r.ref.Namespace}
}

// forSelected is what the networking kinds mean to proxies of a domain that these
// rules select.
func (p *plan) forSelected(domain string, s selection) *domainPlan {
	d := p.forDomain(domain)
	d.selection = s
	return d
}

// selecting are the rules of a namespace that fit, first to win first.
func (p *plan) selecting(namespace string, fits func(mesh.Labels) bool) []*destinationRule {
	var out []*destinationRule
	for _, rule := range p.selectingIn.under(p, namespace) {
		if fits(rule.labels) {
			out = append(out, rule)
		}
	}
	return out
}

// homeWith is what the networking kinds mean to proxies in the namespace that have
// these labels, and no others; nil for those that nothing selects.
func (p *plan) homeWith(namespace string, labels mesh.Labels) *domainPlan {
	d := p.forDomain(p.homeOf(namespace))
	if labels != nil {
		d.selection = selectionOf(p.selecting(namespace, func(asked mesh.Labels) bool { return asked.SubsetOf(labels) }))
	}
	return d
}

// selectionOf is that of a caller. A rule that another one of its host wins
// against is reported, unless the other selects all that it does: then nobody
// follows it, and its check says so.
func (p *plan) selectionOf(who *caller) selection {
	d := p.forDomain(who.domain)
	if d.namespace == "" {
		return ""
	}
	rules := p.selecting(d.namespace, who.bears)
	first := map[string]*destinationRule{}
	for _, rule := range rules {
		host := d.complete(rule.spec.GetHost(), rule.ref.Namespace)
		switch winner := first[host]; {
		case winner == nil:
			first[host] = rule
		case !winner.labels.SubsetOf(rule.labels):
			p.conflict(diag.WorkloadShared, rule.ref, "spec.workloadSelector",
				fmt.Sprintf("workloads that %s selects as well follow that one, which %s; of this rule they follow the TLS settings only", winner.ref, p.firstBecause()))
		}
	}
	return selectionOf(rules)
}

// checkShadowed reports subsets that callers have which nothing selects, and those
// that the rule selects have not.
func (d *domainPlan) checkShadowed(rule *destinationRule, host string) {
	if rule.labels == nil {
		return
	}
	forAll := d.homeWith(rule.ref.Namespace, nil).ruleFor(host)
	selected := d.ruleFor(host)
	for _, s := range forAll.allSubsets() {
		if selected.subset(s) == nil {
			d.notHonoured(diag.UnknownSubset, rule.ref, "spec.subsets", fmt.Sprintf(
				"requests of the selected workloads to subset %s of %s fail: %s, which has it, is not merged with this rule", s, host, forAll.ref))
		}
	}
}

// allSubsets are their names, each once; none of no rule.
func (r *destinationRule) allSubsets() []string {
	if r == nil {
		return nil
	}
	var out []string
	for _, s := range r.spec.GetSubsets() {
		if !slices.Contains(out, s.GetName()) {
			out = append(out, s.GetName())
		}
	}
	return out
}
