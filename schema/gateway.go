package schema

import (
	"fmt"
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilot-api/pilot-api/diag"
)

func init() {
	register(&Kind{
		Group: networkingGroup, Version: "v1", OldVersions: []string{"v1beta1", "v1alpha3"},
		Kind: "Gateway", Plural: "gateways", Singular: "gateway",
		Dashed: "gateway", ShortNames: []string{"gw"},
		Doc: "A Gateway opens ports at the edge of the mesh: which hosts may be reached there, and with which TLS. " +
			"Where requests go from there is said by VirtualService objects that name the Gateway.",
		Columns: []Column{
			stringColumn("Selector", "Labels of the workloads that open the ports.", func(g *networking.Gateway) string { return labelsText(g.Selector) }),
			stringColumn("Ports", "The ports, with protocols.", gatewayPortsText),
			stringColumn("Hosts", "The hosts that may be reached.", gatewayHostsText),
		},
		newSpec: decodeJSON[networking.Gateway],
		check:   checkAs(checkGateway),
	})
}

func gatewayPortsText(g *networking.Gateway) string {
	parts := make([]string, len(g.Servers))
	for i, server := range g.Servers {
		parts[i] = fmt.Sprintf("%d/%s", server.GetPort().GetNumber(), server.GetPort().GetProtocol())
	}
	return strings.Join(parts, ",")
}

func gatewayHostsText(g *networking.Gateway) string {
	var hosts []string
	for _, server := range g.Servers {
		hosts = append(hosts, server.Hosts...)
	}
	return strings.Join(hosts, ",")
}

func checkGateway(g *networking.Gateway) diag.List {
	var p problems
	return p.list
}
