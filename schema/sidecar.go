package schema

import (
	"fmt"
	"net"
	"strconv"
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilot-api/pilot-api/diag"
)

func init() {
	register(&Kind{
		Group: networkingGroup, Version: "v1", Served: networkingVersions,
		Kind: "Sidecar", Plural: "sidecars", Singular: "sidecar",
		Dashed: "sidecar", ShortNames: nil,
		Doc: "A Sidecar limits the configuration of the proxies beside some workloads: which hosts they know, how they treat " +
			"all other hosts, and which ports of the workload are open. A Sidecar with a selector is for the workloads of its " +
			"namespace that have these labels. A Sidecar without a selector is for the other workloads of its namespace or, in " +
			"the root namespace of the mesh, for all namespaces that have none. A proxy follows only the first Sidecar in this " +
			"order. Of several equal ones, it follows the oldest. The annotation " + OnDemandAnnotation + " decides whether these proxies have only " +
			"the hosts that their workloads call (" + OnDemandHosts + ") or all hosts (" + OnDemandOff + "), whatever the mesh settings say.",
		Columns: []Column{
			stringColumn("Selector", "The labels of the workloads that it is for.", func(s *networking.Sidecar) string { return labelsText(s.GetWorkloadSelector().GetLabels()) }),
			listColumn("Hosts", "The hosts that their proxies know.", ",", sidecarHosts),
			wideColumn("Ingress", "The ports that are open, with protocols.", sidecarPorts),
		},
		selectable: []SelectableField{selectable("spec.egress.hosts", sidecarHosts)},
		spec:       inProto[networking.Sidecar](),
		check:      checkAs(checkSidecar),
		limits:     checkAs(sidecarLimits),
	})
}

func sidecarHosts(s *networking.Sidecar) []string {
	var out []string
	for _, e := range s.GetEgress() {
		out = append(out, e.GetHosts()...)
	}
	return out
}

func sidecarPorts(s *networking.Sidecar) string {
	var out []string
	for _, in := range s.GetIngress() {
		out = append(out, fmt.Sprintf("%d/%s", in.GetPort().GetNumber(), in.GetPort().GetProtocol()))
	}
	return strings.Join(out, ",")
}

// checkSidecar applies the rules of Istio's admission check.
func checkSidecar(s *networking.Sidecar) diag.List {
	var p problems
	if len(s.GetEgress()) == 0 && len(s.GetIngress()) == 0 && s.GetOutboundTrafficPolicy() == nil && s.GetInboundConnectionPool() == nil {
		p.required("spec", "must have egress, ingress, outboundTrafficPolicy or inboundConnectionPool")
	}
	ports := map[uint32]int{}
	for i, in := range s.GetIngress() {
		at := indexField("spec.ingress", i)
		p.protocol(at+".port.protocol", in.GetPort().GetProtocol())
		repeated(&p, at+".port.number", "spec.ingress", ports, in.GetPort().GetNumber(), i)
		p.defaultEndpoint(at+".defaultEndpoint", in.GetDefaultEndpoint())
	}
	for i, e := range s.GetEgress() {
		p.egressListener(indexField("spec.egress", i), e, i == len(s.GetEgress())-1)
	}
	return p.list
}

func (p *problems) egressListener(at string, e *networking.IstioEgressListener, last bool) {
	if e.GetPort() == nil {
		if !last {
			p.required(at+".port", "must be given: only the last listener may be for all other ports")
		}
		if e.GetBind() != "" {
			p.forbidden(at+".bind", "cannot be given without a port")
		}
		return
	}
	p.protocol(at+".port.protocol", e.GetPort().GetProtocol())
	if unix := strings.HasPrefix(e.GetBind(), unixPrefix); unix {
		p.socket(at+".bind", e.GetBind())
		if e.GetPort().GetNumber() != 0 {
			p.invalidValue(at+".port.number", e.GetPort().GetNumber(), "must be 0 for a Unix socket")
		}
		if e.GetCaptureMode() == networking.CaptureMode_IPTABLES {
			p.invalidValue(at+".captureMode", "IPTABLES", "must be DEFAULT or NONE for a Unix socket")
		}
	} else if e.GetPort().GetNumber() == 0 {
		p.invalid(at+".port.number", "must be 1 to 65535")
	}
}

// defaultEndpoint checks the address where the workload listens.
func (p *problems) defaultEndpoint(field, address string) {
	if address == "" {
		return
	}
	if strings.HasPrefix(address, unixPrefix) {
		p.socket(field, address)
		return
	}
	host, port, err := net.SplitHostPort(address)
	number, numberErr := strconv.Atoi(port)
	known := host == "127.0.0.1" || host == "0.0.0.0" || host == "::1" || host == "::"
	if err != nil || numberErr != nil || !known || number < 1 || number > 65535 {
		p.invalidValue(field, address, "must be 127.0.0.1:PORT, 0.0.0.0:PORT, [::1]:PORT, [::]:PORT or unix:// and a path")
	}
}
