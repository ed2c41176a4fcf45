package schema

import (
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilot-api/pilot-api/diag"
)

func init() {
	register(&Kind{
		Group: networkingGroup, Version: "v1", OldVersions: []string{"v1beta1", "v1alpha3"},
		Kind: "VirtualService", Plural: "virtualservices", Singular: "virtualservice",
		Dashed: "virtual-service", ShortNames: []string{"vs"},
		Doc: "A VirtualService says where requests and connections to its hosts go: " +
			"in one list of routes each for HTTP, TLS and TCP, the first route that matches wins.",
		Columns: []Column{
			stringColumn("Gateways", "The gateways that the routes are for; mesh is all sidecars.", gatewaysText),
			stringColumn("Hosts", "The hosts that callers name.", func(s *networking.VirtualService) string { return strings.Join(s.Hosts, ",") }),
		},
		newSpec: decodeJSON[networking.VirtualService],
		check:   checkAs(checkVirtualService),
	})
}

func gatewaysText(s *networking.VirtualService) string {
	if len(s.Gateways) == 0 {
		return "mesh"
	}
	return strings.Join(s.Gateways, ",")
}

func checkVirtualService(s *networking.VirtualService) diag.List {
	var p problems
	return p.list
}
