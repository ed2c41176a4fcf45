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
			{server.GetBind() != "" && !IsAddress(server.GetBind()), "bind", "the server is left out: a port is opened at an IP address"},
			{server.GetDefaultEndpoint() != "", "defaultEndpoint", "requests go where VirtualServices say"},
		})
		p.serverTLSLimits(at+".tls", server.GetTls())
	}
	if len(g.GetSelector()) > 0 {
		p.warn("spec.selector", "every router proxy opens the ports")
	}
	return p.list
}

// serverTLSLimits: what would let more clients in than was asked for closes the
// server.
func (p *problems) serverTLSLimits(at string, tls *networking.ServerTLSSettings) {
	const (
		leftOut    = "the server is left out: "
		unverified = leftOut + "certificates of clients are verified by caCertificates only"
	)
	asks := tls.GetMode() != networking.ServerTLSSettings_SIMPLE
	oldest := tls.GetMinProtocolVersion()
	p.notFollowed(at, []unmet{
		{len(tls.GetCredentialNames()) > 0, "credentialNames", "a port has one certificate; use credentialName"},
		{len(tls.GetTlsCertificates()) > 0, "tlsCertificates", "a port has one certificate; use serverCertificate and privateKey"},
		{asks && tls.GetCaCrl() != "", "caCrl", leftOut + "revocations are not looked up"},
		{asks && tls.GetCaCertCredentialName() != "", "caCertCredentialName", leftOut + "there are no secrets to fetch; use caCertificates"},
		{asks && len(tls.GetSubjectAltNames()) > 0, "subjectAltNames", unverified},
		{asks && len(tls.GetVerifyCertificateSpki()) > 0, "verifyCertificateSpki", unverified},
		{asks && len(tls.GetVerifyCertificateHash()) > 0, "verifyCertificateHash", unverified},
		{tls.GetInsecureSkipVerify().GetValue() && tls.GetMode() == networking.ServerTLSSettings_MUTUAL, "insecureSkipVerify", "certificates of clients are verified all the same; use SIMPLE"},
		{oldest == networking.ServerTLSSettings_TLSV1_0 || oldest == networking.ServerTLSSettings_TLSV1_1, "minProtocolVersion", "clients need TLS 1.2 at least"},
		{oldest == networking.ServerTLSSettings_TLSV1_3, "minProtocolVersion", leftOut + "clients with TLS 1.2 would be let in"},
		{tls.GetMaxProtocolVersion() != networking.ServerTLSSettings_TLS_AUTO && tls.GetMaxProtocolVersion() != networking.ServerTLSSettings_TLSV1_3,
			"maxProtocolVersion", leftOut + "clients with TLS 1.3 would be let in"},
		{len(tls.GetCipherSuites()) > 0, "cipherSuites", leftOut + "clients with any of Envoy's ciphers would be let in"},
	})
}
