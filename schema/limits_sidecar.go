package schema

import (
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilot-api/pilot-api/diag"
)

func speaksHTTP(p *networking.SidecarPort) bool {
	switch strings.ToUpper(p.GetProtocol()) {
	case "HTTP", "HTTP2", "GRPC", "GRPC-WEB":
		return true
	}
	return false
}

func sidecarLimits(s *networking.Sidecar) diag.List {
	var p problems
	p.notFollowed("spec", []unmet{
		{s.GetInboundConnectionPool() != nil, "inboundConnectionPool", "calls to the workload are not limited"},
		{s.GetOutboundTrafficPolicy().GetEgressProxy() != nil, "outboundTrafficPolicy.egressProxy", "calls to unknown hosts fail; leave it out, or declare the hosts"},
	})
	for i, in := range s.GetIngress() {
		p.notFollowed(indexField("spec.ingress", i), []unmet{
			{in.GetTls() != nil, "tls", "the listener is left out: TLS of callers does not end at a sidecar"},
			{in.GetConnectionPool() != nil, "connectionPool", "calls to the workload are not limited"},
			//lint:ignore SA1019 Old objects have it.
			{in.GetPort().GetTargetPort() != 0, "port.targetPort", "defaultEndpoint says where calls go"},
		})
	}
	for i, e := range s.GetEgress() {
		p.notFollowed(indexField("spec.egress", i), []unmet{
			{e.GetCaptureMode() == networking.CaptureMode_NONE && !speaksHTTP(e.GetPort()), "captureMode", "calls arrive redirected: the proxy opens only ports with HTTP"},
			//lint:ignore SA1019 Old objects have it.
			{e.GetPort().GetTargetPort() != 0, "port.targetPort", "calls go to the ports that routes and services say"},
			{strings.HasPrefix(e.GetBind(), unixPrefix), "bind", "the listener is left out: calls are taken at ports"},
			{e.GetPort() != nil && e.GetBind() != "" && e.GetCaptureMode() != networking.CaptureMode_NONE && !strings.HasPrefix(e.GetBind(), unixPrefix),
				"bind", "calls to every address are accepted; with captureMode NONE only those to this one"},
		})
	}
	return p.list
}
