package schema

import (
	"fmt"
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilot-api/pilot-api/diag"
)

func init() {
	register(&Kind{
		Group: networkingGroup, Version: "v1", Served: networkingVersions,
		Kind: "Gateway", Plural: "gateways", Singular: "gateway",
		Dashed: "gateway", ShortNames: []string{"gw"},
		Doc: "A Gateway opens ports at the edge of the mesh. It says which hosts may be reached there, and with which TLS. " +
			"VirtualService objects that name the Gateway say where the requests go.",
		Columns: []Column{
			stringColumn("Selector", "Labels of the routers that open the ports.", func(g *networking.Gateway) string { return labelsText(g.Selector) }),
			listColumn("Ports", "The ports, with protocols.", ",", gatewayPorts),
			listColumn("Hosts", "The hosts that may be reached.", ",", gatewayHosts),
			wideColumn("TLS", "The TLS mode of each port.", gatewayTLS),
		},
		selectable: []SelectableField{
			selectable("spec.servers.hosts", gatewayHosts),
			selectable("spec.servers.tls.credentialName", gatewayCredentials),
		},
		spec:   inProto[networking.Gateway](),
		check:  checkAs(checkGateway),
		limits: checkAs(gatewayLimits),
	})
}

func gatewayPorts(g *networking.Gateway) []string {
	parts := make([]string, len(g.Servers))
	for i, server := range g.Servers {
		parts[i] = fmt.Sprintf("%d/%s", server.GetPort().GetNumber(), server.GetPort().GetProtocol())
	}
	return parts
}

// gatewayTLS returns "443=SIMPLE" for each server with TLS settings.
func gatewayTLS(g *networking.Gateway) string {
	var parts []string
	for _, server := range g.Servers {
		if tls := server.GetTls(); tls != nil {
			parts = append(parts, fmt.Sprintf("%d=%s", server.GetPort().GetNumber(), tls.GetMode()))
		}
	}
	return strings.Join(parts, ",")
}

func gatewayCredentials(g *networking.Gateway) []string {
	var names []string
	for _, server := range g.Servers {
		names = append(names, server.GetTls().GetCredentialName())
	}
	return names
}

func gatewayHosts(g *networking.Gateway) []string {
	var hosts []string
	for _, server := range g.Servers {
		hosts = append(hosts, server.Hosts...)
	}
	return hosts
}

// checkGateway applies the rules of Istio's reference page and of its admission
// check.
func checkGateway(g *networking.Gateway) diag.List {
	var p problems
	names, ports := map[string]int{}, map[string]int{}
	for i, server := range g.Servers {
		at := fmt.Sprintf("spec.servers[%d]", i)
		p.server(at, server)
		repeated(&p, at+".port.name", "spec.servers", ports, server.GetPort().GetName(), i)
		if server.Name != "" {
			repeated(&p, at+".name", "spec.servers", names, server.Name, i)
		}
	}
	return p.list
}

func (p *problems) server(field string, s *networking.Server) {
	port := s.GetPort()
	p.protocol(field+".port.protocol", port.GetProtocol())
	p.bind(field, s)
	//lint:ignore SA1019 Old objects have it.
	if port.GetTargetPort() != 0 {
		p.notSupported(field+".port.targetPort", "a server listens on number, and hands on what routes say")
	}
	if s.DefaultEndpoint != "" {
		p.notSupported(field+".defaultEndpoint", "a Gateway hands requests on as VirtualService objects say")
	}
	if s.GetTls().GetMode() != networking.ServerTLSSettings_AUTO_PASSTHROUGH {
		p.noClusterSNI(field+".hosts", s.Hosts)
	}
	p.serverProtocolTLS(field+".tls", s)
	if s.Tls != nil {
		p.serverTLS(field+".tls", s.Tls)
	}
}

// noClusterSNI rejects names that only another mesh asks for.
func (p *problems) noClusterSNI(field string, hosts []string) {
	for i, host := range hosts {
		if isClusterSNI(host) {
			p.invalidValue(indexField(field, i), host, "goes with tls.mode AUTO_PASSTHROUGH only")
		}
	}
}

func (p *problems) bind(field string, s *networking.Server) {
	number := s.GetPort().GetNumber()
	_, unix := strings.CutPrefix(s.Bind, unixPrefix)
	switch {
	case unix:
		p.socket(field+".bind", s.Bind)
		if number != 0 {
			p.invalidValue(field+".port.number", number, "must be 0 for a Unix socket")
		}
	case number == 0:
		p.invalidValue(field+".port.number", number, "must be from 1 to 65535")
	}
	switch {
	case s.Bind == "" || unix:
	case !isIP(s.Bind):
		p.invalidValue(field+".bind", s.Bind, "must be an IP address, or unix:// and a path")
	}
}

func (p *problems) serverProtocolTLS(field string, s *networking.Server) {
	switch strings.ToUpper(s.GetPort().GetProtocol()) {
	case "HTTPS", "TLS":
		if s.Tls == nil {
			p.required(field, "must be given for HTTPS and TLS; mode says whether TLS ends here")
		}
	case "HTTP", "HTTP2", "GRPC", "GRPC-WEB":
		if s.Tls != nil && (s.Tls.Mode != networking.ServerTLSSettings_PASSTHROUGH || hasCertificate(s.Tls)) {
			p.forbidden(field, "can only have httpsRedirect for plain HTTP; use HTTPS")
		}
	default:
		if s.Tls != nil {
			p.forbidden(field, "can only be given for HTTPS and TLS")
		}
	}
	if s.GetTls().GetHttpsRedirect() && !strings.HasPrefix(strings.ToUpper(s.GetPort().GetProtocol()), "HTTP") {
		p.warn(field+".httpsRedirect", "has no effect on what is not HTTP")
	}
}
