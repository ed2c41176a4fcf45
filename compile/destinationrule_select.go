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

// selection is the names of the DestinationRules that select proxies by their
// labels. All are in the proxies' namespace. The names are joined by newlines,
// which no name contains.
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

// selectorOf returns the labels of the workload selector, or nil if there is none.
// A selector without labels selects all callers of the namespace.
func selectorOf(spec *networking.DestinationRule) mesh.Labels {
	if spec.GetWorkloadSelector() == nil {
		return nil
	}
	labels := mesh.Labels{}
	maps.Copy(labels, spec.GetWorkloadSelector().GetMatchLabels())
	return labels
}

// selectsIn returns the namespace whose proxies the rule selects, if it has a
// selector.
func (r *destinationRule) selectsIn() []string {
	if r.labels == nil {
		return nil
	}
	return []string{r.ref.Namespace}
}

// forSelected returns the viewpoint of proxies of a domain that these rules select.
func (rd *reader) forSelected(domain string, s selection) *viewpoint {
	v := rd.forDomain(domain)
	v.selection = s
	return v
}

// selecting returns the matching rules of a namespace, in order of precedence.
func (rd *reader) selecting(namespace string, fits func(mesh.Labels) bool) []*destinationRule {
	var out []*destinationRule
	for _, rule := range rd.selectingIn.under(rd, namespace) {
		if fits(rule.labels) {
			out = append(out, rule)
		}
	}
	return out
}

// homeWith returns the viewpoint of proxies in the namespace that have exactly these
// labels; nil means proxies that no rule selects.
func (rd *reader) homeWith(namespace string, labels mesh.Labels) *viewpoint {
	v := rd.forDomain(rd.homeOf(namespace))
	if labels != nil {
		v.selection = selectionOf(rd.selecting(namespace, func(asked mesh.Labels) bool { return asked.SubsetOf(labels) }))
	}
	return v
}

// selectionOf returns the selection of a caller. It reports a rule that loses to
// another rule for the same host, unless the other one selects all proxies that it
// does: then nobody follows it, and its check reports that.
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
				fmt.Sprintf("workloads that %s also selects follow that object, which %s; they follow only the TLS settings of this rule", winner.ref, p.firstBecause()))
		}
	}
	return selectionOf(rules)
}

// checkShadowed reports subsets that unselected callers have, but callers that the
// rule selects do not.
func (d *check) checkShadowed(rule *destinationRule, host string) {
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

// allSubsets returns the names of the subsets, each once; none if r is nil.
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
