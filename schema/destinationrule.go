package schema

import (
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilot-api/pilot-api/diag"
)

func init() {
	register(&Kind{
		Group: networkingGroup, Version: "v1", Served: networkingVersions,
		Kind: "DestinationRule", Plural: "destinationrules", Singular: "destinationrule",
		Dashed: "destination-rule", ShortNames: []string{"dr"},
		Doc: "A DestinationRule says how the instances of a host are called once a route has led there: " +
			"load balancing, limits, outlier detection, TLS. It also names subsets of them, for routes to refer to.",
		Columns: []Column{
			stringColumn("Host", "The host that the rule is for.", func(r *networking.DestinationRule) string { return r.Host }),
			wideColumn("Subsets", "The subsets, by name.", subsetsText),
		},
		selectable: []SelectableField{
			selectableText("spec.host", func(r *networking.DestinationRule) string { return r.Host }),
		},
		spec:   inProto[networking.DestinationRule](),
		check:  checkAs(checkDestinationRule),
		limits: checkAs(destinationRuleLimits),
	})
}

func subsetsText(r *networking.DestinationRule) string {
	names := make([]string, len(r.Subsets))
	for i, subset := range r.Subsets {
		names[i] = subset.Name
	}
	return strings.Join(names, ",")
}

// checkDestinationRule applies the rules of Istio's reference page and of its
// admission check.
func checkDestinationRule(r *networking.DestinationRule) diag.List {
	var p problems
	p.trafficPolicy("spec.trafficPolicy", r.TrafficPolicy, nil)
	p.portsWithoutTLS("spec.trafficPolicy", r.TrafficPolicy, nil)
	first := map[string]int{}
	for i, subset := range r.Subsets {
		at := indexField("spec.subsets", i)
		repeated(&p, at+".name", "spec.subsets", first, subset.Name, i)
		p.trafficPolicy(at+".trafficPolicy", subset.TrafficPolicy, r.GetTrafficPolicy().GetOutlierDetection())
		p.portsWithoutTLS(at+".trafficPolicy", subset.TrafficPolicy, r.TrafficPolicy)
	}
	p.exportToSomeone(r.ExportTo)
	p.callers(r)
	return p.list
}

func (p *problems) callers(r *networking.DestinationRule) {
	if r.WorkloadSelector == nil {
		return
	}
	if len(r.WorkloadSelector.MatchLabels) == 0 {
		p.suspect("spec.workloadSelector", "has no labels, so it selects every caller of the namespace")
	}
	if len(r.ExportTo) > 1 || len(r.ExportTo) == 1 && r.ExportTo[0] == "*" {
		p.invalid("spec.exportTo", "must be the own namespace (.) beside workloadSelector, which selects callers there")
	}
}
