package schema

import (
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilot-api/pilot-api/diag"
)

func init() {
	register(&Kind{
		Group: networkingGroup, Version: "v1", OldVersions: []string{"v1beta1", "v1alpha3"},
		Kind: "DestinationRule", Plural: "destinationrules", Singular: "destinationrule",
		Dashed: "destination-rule", ShortNames: []string{"dr"},
		Doc: "A DestinationRule says how the instances of a host are called once a route has led there: " +
			"load balancing, limits, outlier detection, TLS. It also names subsets of them, for routes to refer to.",
		Columns: []Column{
			stringColumn("Host", "The host that the rule is for.", func(r *networking.DestinationRule) string { return r.Host }),
			wideColumn("Subsets", "The subsets, by name.", subsetsText),
		},
		newSpec: decodeJSON[networking.DestinationRule],
		check:   checkAs(checkDestinationRule),
	})
}

func subsetsText(r *networking.DestinationRule) string {
	names := make([]string, len(r.Subsets))
	for i, subset := range r.Subsets {
		names[i] = subset.Name
	}
	return strings.Join(names, ",")
}

func checkDestinationRule(r *networking.DestinationRule) diag.List {
	var p problems
	return p.list
}
