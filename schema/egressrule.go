package schema

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pilot-api/pilot-api/diag"
)

// EgressRule is the spec of the kind EgressRule: hosts outside the mesh that
// callers inside it may reach.
type EgressRule struct {
	// Destination may have only Service.
	Destination *IstioService `json:"destination"`
	Ports       []EgressPort  `json:"ports"`
	// UseEgressProxy must not be true; validation rejects it.
	UseEgressProxy bool `json:"useEgressProxy"`
}

// EgressPort is one port of the external hosts.
type EgressPort struct {
	Port int32 `json:"port"`
	// Protocol is, in any case, http, http2, grpc, https, tcp or mongo.
	Protocol string `json:"protocol"`
}

var (
	egressHTTP = []string{"http", "http2", "grpc", "https"}
	egressTCP  = []string{"tcp", "mongo"}
)

func init() {
	register(&Kind{
		Group: configGroup, Version: "v1alpha2", OldVersions: []string{"v1alpha1"},
		Kind: "EgressRule", Plural: "egressrules", Singular: "egressrule",
		Dashed: "egress-rule", ShortNames: []string{"er"},
		Doc: "An EgressRule lets callers in the mesh reach hosts outside it, by name, wildcard or address range, " +
			"on the ports that it lists.",
		Columns: []Column{
			stringColumn("Destination", "The hosts outside the mesh.", func(e *EgressRule) string { return e.Destination.String() }),
			listColumn("Ports", "The open ports, with protocols.", ",", egressPorts),
		},
		selectable: selectableService(func(e *EgressRule) *IstioService { return e.Destination }),
		spec:       inJSON[EgressRule](),
		check:      checkAs(checkEgressRule),
	})
}

func egressPorts(e *EgressRule) []string {
	parts := make([]string, len(e.Ports))
	for i, port := range e.Ports {
		parts[i] = fmt.Sprintf("%d/%s", port.Port, strings.ToLower(port.Protocol))
	}
	return parts
}

func checkEgressRule(e *EgressRule) diag.List {
	var p problems
	p.egressDestination("spec.destination", e.Destination)
	seen := map[int32]int{}
	for i, port := range e.Ports {
		at := fmt.Sprintf("spec.ports[%d]", i)
		if first, ok := seen[port.Port]; ok {
			p.duplicate(at+".port", fmt.Sprintf("is already given in spec.ports[%d]; a port has one protocol", first))
		} else {
			seen[port.Port] = i
		}
		p.egressProtocol(at+".protocol", port.Protocol, e.Destination)
	}
	if e.UseEgressProxy {
		p.notSupported("spec.useEgressProxy", "an egress proxy is not supported; requests leave from the caller's own proxy")
	}
	return p.list
}

func (p *problems) egressDestination(field string, s *IstioService) {
	if s == nil {
		return
	}
	if s.Service == "" {
		p.required(field+".service", "must be a host, a wildcard such as *.example.com, or an IPv4 range such as 192.0.2.0/24")
	}
	for _, other := range []struct {
		name string
		set  bool
	}{
		{"name", s.Name != ""}, {"namespace", s.Namespace != ""}, {"domain", s.Domain != ""}, {"labels", len(s.Labels) > 0},
	} {
		if other.set {
			p.forbidden(field+"."+other.name, "a host outside the mesh is named by service alone")
		}
	}
}

func (p *problems) egressProtocol(field, protocol string, to *IstioService) {
	known, isRange := slices.Concat(egressHTTP, egressTCP), to != nil && isCIDR(to.Service)
	name := strings.ToLower(protocol)
	switch {
	case !slices.Contains(known, name):
		p.notSupportedValue(field, protocol, "must be one of "+strings.Join(known, ", "))
	case isRange && !slices.Contains(egressTCP, name):
		p.notSupportedValue(field, protocol, "must be tcp or mongo: the destination is an address range, and HTTP is distinguished by host")
	case !isRange && slices.Contains(egressTCP, name):
		p.warn(field, "TCP is distinguished by address, so it needs an address range as spec.destination.service; for a host name this port has no effect")
	}
}
