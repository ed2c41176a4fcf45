package schema

import (
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilot-api/pilot-api/diag"
)

func gatewayLimits(g *networking.Gateway) diag.List {
	var p problems
	for i, server := range g.GetServers() {
		at := indexField("spec.servers", i)
		p.notFollowed(at, []unmet{
			{server.GetBind() != "" && server.GetBind() != "0.0.0.0", "bind", "the port is opened at every address"},
			{server.GetDefaultEndpoint() != "", "defaultEndpoint", "requests go where VirtualServices say"},
		})
		p.serverTLSLimits(at+".tls", server.GetTls())
	}
	if len(g.GetSelector()) > 0 {
		p.warn("spec.selector", "every router proxy opens the ports")
	}
	return p.list
}

func (p *problems) serverTLSLimits(at string, tls *networking.ServerTLSSettings) {
	const unverified = "certificates of clients are verified by caCertificates only"
	p.notFollowed(at, []unmet{
		{tls.GetHttpsRedirect(), "httpsRedirect", "requests in plain text are served like others"},
		{len(tls.GetCredentialNames()) > 0, "credentialNames", "a port has one certificate; use credentialName"},
		{len(tls.GetTlsCertificates()) > 0, "tlsCertificates", "a port has one certificate; use serverCertificate and privateKey"},
		{tls.GetCaCrl() != "", "caCrl", "revocations are not looked up"},
		{tls.GetCaCertCredentialName() != "", "caCertCredentialName", "there are no secrets to fetch; use caCertificates"},
		{len(tls.GetSubjectAltNames()) > 0, "subjectAltNames", unverified},
		{len(tls.GetVerifyCertificateSpki()) > 0, "verifyCertificateSpki", unverified},
		{len(tls.GetVerifyCertificateHash()) > 0, "verifyCertificateHash", unverified},
		{tls.GetInsecureSkipVerify().GetValue() && tls.GetMode() == networking.ServerTLSSettings_MUTUAL, "insecureSkipVerify", "certificates of clients are verified all the same; use SIMPLE"},
		{tls.GetMinProtocolVersion() != 0, "minProtocolVersion", "Envoy's defaults hold"},
		{tls.GetMaxProtocolVersion() != 0, "maxProtocolVersion", "Envoy's defaults hold"},
		{len(tls.GetCipherSuites()) > 0, "cipherSuites", "Envoy's defaults hold"},
	})
}
