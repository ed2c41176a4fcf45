package schema

import (
	"fmt"
	"maps"
	"slices"

	"github.com/pilot-api/pilot-api/diag"
)

// IngressRule is the spec of the kind IngressRule: requests from outside the mesh
// that go to a service inside.
type IngressRule struct {
	Destination *IstioService `json:"destination"`
	// DestinationPort and DestinationPortName choose the port of the service. A
	// rule that has an effect sets one of them.
	DestinationPort     *int32  `json:"destinationPort"`
	DestinationPortName *string `json:"destinationPortName"`
	// TLSSecret, if not empty, moves the rule from port 80 to port 443.
	TLSSecret string `json:"tlsSecret"`
	// Match has an effect for an exact authority, and an exact or prefix uri.
	Match *MatchCondition `json:"match"`
}

func init() {
	register(&Kind{
		Group: configGroup, Version: "v1alpha2", OldVersions: []string{"v1alpha1"},
		Kind: "IngressRule", Plural: "ingressrules", Singular: "ingressrule",
		Dashed: "ingress-rule", ShortNames: []string{"ir"},
		Doc: "An IngressRule lets requests from outside the mesh in: by host and path to a port of a service, " +
			"on port 80, or with TLS on port 443.",
		Columns: []Column{
			stringColumn("Destination", "The service that requests go to.", func(i *IngressRule) string { return i.Destination.String() }),
			stringColumn("Port", "The port of the service, by number or name.", ingressPortText),
			stringColumn("TLS", "The secret for TLS; the rule is then on port 443.", func(i *IngressRule) string { return i.TLSSecret }),
			wideColumn("Match", "What a request must look like.", func(i *IngressRule) string { return i.Match.String() }),
		},
		selectable: append(selectableService(func(i *IngressRule) *IstioService { return i.Destination }),
			selectableText("spec.tlsSecret", func(i *IngressRule) string { return i.TLSSecret })),
		spec:  inJSON[IngressRule](),
		check: checkAs(checkIngressRule),
	})
}

func ingressPortText(i *IngressRule) string {
	switch {
	case i.DestinationPort != nil:
		return fmt.Sprint(*i.DestinationPort)
	case i.DestinationPortName != nil:
		return *i.DestinationPortName
	}
	return ""
}

func checkIngressRule(i *IngressRule) diag.List {
	var p problems
	p.service("spec.destination", i.Destination)
	p.noLabels("spec.destination", i.Destination)
	switch {
	case i.DestinationPort != nil && i.DestinationPortName != nil:
		p.forbidden("spec.destinationPortName", "cannot be given together with destinationPort: give one of the two")
	case i.DestinationPort == nil && i.DestinationPortName == nil:
		p.warnOf(diag.Closed, "spec", "names no port of the service, so the rule answers 503; set destinationPort or destinationPortName")
	}
	p.ingressMatch("spec.match", i.Match)
	return p.list
}

// ingressMatch only warns, because a match that cannot be followed was never an
// error in an IngressRule.
func (p *problems) ingressMatch(field string, m *MatchCondition) {
	if m == nil {
		return
	}
	const skipped = "cannot be followed at the ingress, so requests that match the rest are answered with 503; only an exact authority and an exact or prefix uri can"
	for name, set := range map[string]bool{".source": m.Source != nil, ".tcp": m.TCP != nil, ".udp": m.UDP != nil} {
		if set {
			p.warnOf(diag.Closed, field+name, skipped)
		}
	}
	if m.Request == nil {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(m.Request.Headers)) {
		how := m.Request.Headers[name]
		if how.Exact != nil && name == "authority" || (how.Exact != nil || how.Prefix != nil) && name == "uri" {
			continue
		}
		p.warnOf(diag.Closed, keyField(field+".request.headers", name), skipped)
	}
}
