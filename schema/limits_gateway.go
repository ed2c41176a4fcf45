package schema

import (
	"slices"
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilot-api/pilot-api/diag"
)

func gatewayLimits(g *networking.Gateway) diag.List {
	var p problems
	for i, server := range g.GetServers() {
		at := indexField("spec.servers", i)
		p.notFollowed(at, []unmet{
			{strings.EqualFold(server.GetPort().GetProtocol(), "UDP"), "port.protocol", "the server is left out: gateways do not pass on UDP"},
			{server.GetBind() != "" && !IsAddress(server.GetBind()), "bind", "the server is left out: a port is opened at an IP address"},
			{server.GetDefaultEndpoint() != "", "defaultEndpoint", "requests go where VirtualServices say"},
			{server.GetTls().GetMode() == networking.ServerTLSSettings_AUTO_PASSTHROUGH, "tls.mode",
				"the server is left out: it would open every service to other meshes, by names that services do not have here; use PASSTHROUGH and tls routes of VirtualServices"},
		})
		p.serverTLSLimits(at+".tls", server.GetTls())
	}
	return p.list
}

// serverTLSLimits warns of TLS settings that are not followed. A setting that would
// admit more clients than requested closes the server.
func (p *problems) serverTLSLimits(at string, tls *networking.ServerTLSSettings) {
	const leftOut = "the server is left out: "
	if tls == nil || !endsTLS(tls) {
		return
	}
	for i, name := range tls.GetCipherSuites() {
		if !slices.Contains(ciphers, name) {
			p.warnOf(diag.NotFollowed, indexField(at+".cipherSuites", i), "is not supported; the ciphers are "+strings.Join(ciphers, ", "))
		}
	}
	for i, own := range tls.GetTlsCertificates() {
		p.notFollowed(indexField(at+".tlsCertificates", i), []unmet{
			{own.GetCaCertificates() != "", "caCertificates", "clients are verified by caCertificates of tls, whichever certificate they are shown"},
		})
	}
	p.notFollowed(at, []unmet{
		{len(tls.GetCipherSuites()) > 0 && len(KnownCiphers(tls.GetCipherSuites())) == 0, "cipherSuites", leftOut + "none of the ciphers is supported"},
		{slices.ContainsFunc(tls.GetVerifyCertificateSpki(), isNoKeyHash), "verifyCertificateSpki", leftOut + "one of them is no SHA-256 in base64"},
		{slices.ContainsFunc(tls.GetVerifyCertificateHash(), isNoCertificateHash), "verifyCertificateHash", leftOut + "one of them is no SHA-256 in hex"},
		{tls.GetMode() == networking.ServerTLSSettings_SIMPLE && len(tls.GetSubjectAltNames())+len(tls.GetVerifyCertificateSpki())+len(tls.GetVerifyCertificateHash()) > 0,
			"mode", "SIMPLE requests no certificate from clients, so this has no effect; use MUTUAL"},
	})
}

// endsTLS reports whether the mode terminates TLS instead of passing it through.
func endsTLS(tls *networking.ServerTLSSettings) bool {
	return tls.GetMode() != networking.ServerTLSSettings_PASSTHROUGH && tls.GetMode() != networking.ServerTLSSettings_AUTO_PASSTHROUGH
}
