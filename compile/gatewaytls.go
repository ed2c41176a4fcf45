package compile

import (
	"cmp"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/schema"
)

// gatewayTLS is the TLS of a server, nil for plain text; false when it cannot
// be served at all.
func (p *plan) gatewayTLS(ref diag.Ref, at string, tls *networking.ServerTLSSettings, needed bool) (*ir.ServerTLS, bool) {
	if !needed {
		return nil, true
	}
	if !schema.FollowsServerTLS(tls) {
		return nil, false
	}
	var out *ir.ServerTLS
	switch mode := tls.GetMode(); mode {
	case networking.ServerTLSSettings_SIMPLE, networking.ServerTLSSettings_MUTUAL:
		out = serverTLS(tls.GetServerCertificate(), tls.GetPrivateKey())
		if mode == networking.ServerTLSSettings_MUTUAL {
			out.CAFile = tls.GetCaCertificates()
		}
	case networking.ServerTLSSettings_ISTIO_MUTUAL:
		out = serverTLS(workloadCertificate, workloadKey)
		out.CAFile = workloadRoots
	default:
		p.notHonoured(ref, at+".mode", "the server is left out: gateways terminate TLS; use SIMPLE or MUTUAL")
		return nil, false
	}
	if pair, ok := p.settings.IngressCertificates[tls.GetCredentialName()]; ok {
		out.CertificateFile, out.KeyFile = pair.CertificateFile, pair.KeyFile
		out.CAFile = verifiedBy(tls, out.CAFile, pair.CAFile)
	}
	if out.CertificateFile == "" || out.KeyFile == "" {
		p.notHonoured(ref, at, "the server is left out: name serverCertificate and privateKey, or a credentialName that ingressCertificates of the mesh settings has files for")
		return nil, false
	}
	if tls.GetMode() != networking.ServerTLSSettings_SIMPLE && out.CAFile == "" {
		p.notHonoured(ref, at, "the server is left out, as there is nothing to verify clients by: name caCertificates, or a credentialName that ingressCertificates of the mesh settings has a caFile for")
		return nil, false
	}
	return out, true
}

// verifiedBy is the file that clients are verified by: the server's own, else
// that of its secret. A SIMPLE server asks no client for a certificate.
func verifiedBy(tls *networking.ServerTLSSettings, own, secret string) string {
	if tls.GetMode() == networking.ServerTLSSettings_SIMPLE {
		return ""
	}
	return cmp.Or(own, secret)
}
