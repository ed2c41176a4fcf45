package schema

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	security "istio.io/api/security/v1beta1"

	"github.com/pilot-api/pilot-api/diag"
)

// KindPeerAuthentication is the kind of rules for how workloads take connections.
const KindPeerAuthentication = "PeerAuthentication"

func init() {
	register(&Kind{
		Group: securityGroup, Version: "v1", Served: securityVersions,
		Kind: KindPeerAuthentication, Plural: "peerauthentications", Singular: "peerauthentication",
		Dashed: "peer-authentication", ShortNames: []string{"pa"},
		Doc: "A PeerAuthentication says which connections workloads accept: only mutual TLS (STRICT), mutual TLS or plain text (PERMISSIVE), or all connections as they come (DISABLE). " +
			"A PeerAuthentication with a selector is for the workloads of its namespace with these labels. One without a selector is for the other workloads of the namespace or, in the root namespace of the mesh, for all namespaces that have none. " +
			"If there are several for a workload, the oldest counts. Without any, workloads are PERMISSIVE.",
		Columns: []Column{
			stringColumn("Mode", "The connections that are accepted.", func(p *security.PeerAuthentication) string { return peerMode(p.GetMtls()) }),
			stringColumn("Selector", "Labels of the workloads that it is for.", func(p *security.PeerAuthentication) string { return labelsText(p.GetSelector().GetMatchLabels()) }),
			wideColumn("Ports", "Ports of the workloads with a mode of their own.", peerPorts),
		},
		selectable: []SelectableField{selectableText("spec.mtls.mode", func(p *security.PeerAuthentication) string { return peerMode(p.GetMtls()) })},
		spec:       inProto[security.PeerAuthentication](),
		check:      checkAs(checkPeerAuthentication),
	})
}

func peerMode(m *security.PeerAuthentication_MutualTLS) string { return m.GetMode().String() }

func peerPorts(p *security.PeerAuthentication) string {
	var out []string
	for _, port := range sortedPorts(p) {
		out = append(out, fmt.Sprintf("%d=%s", port, peerMode(p.GetPortLevelMtls()[port])))
	}
	return strings.Join(out, ",")
}

func sortedPorts(p *security.PeerAuthentication) []uint32 {
	var ports []uint32
	for port := range p.GetPortLevelMtls() {
		ports = append(ports, port)
	}
	slices.SortFunc(ports, cmp.Compare[uint32])
	return ports
}

func checkPeerAuthentication(s *security.PeerAuthentication) diag.List {
	var p problems
	if len(s.GetPortLevelMtls()) > 0 && len(s.GetSelector().GetMatchLabels()) == 0 {
		p.forbidden("spec.portLevelMtls", "needs a selector: ports are those of the selected workloads")
	}
	return p.list
}
