package compile

import (
	"cmp"
	"fmt"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/schema"
)

// gatewayTLS is the TLS that ends at a server; false when it cannot be served at
// all.
func (p *plan) gatewayTLS(ref diag.Ref, at string, tls *networking.ServerTLSSettings) (*ir.ServerTLS, bool) {
	if !schema.FollowsServerTLS(tls) {
		return nil, false
	}
	pairs, why := p.certificatesOf(tls)
	if len(pairs) == 0 {
		p.notHonoured(ref, at, "the server is left out: "+why)
		return nil, false
	}
	out := &ir.ServerTLS{
		CertificateFile: pairs[0].CertificateFile, KeyFile: pairs[0].KeyFile, Others: pairs[1:],
		MinVersion: tlsVersions[tls.GetMinProtocolVersion()], MaxVersion: tlsVersions[tls.GetMaxProtocolVersion()],
		Ciphers: schema.KnownCiphers(tls.GetCipherSuites()),
	}
	if len(out.Others) == 0 {
		out.Others = nil
	}
	setVersions(out)
	if tls.GetMode() == networking.ServerTLSSettings_SIMPLE {
		return out, true
	}
	if out.Client = p.clientCertificate(tls); out.Client.CAFile == "" {
		p.notHonoured(ref, at, "the server is left out, as there is nothing to verify clients by: name caCertificates, or a credentialName that ingressCertificates of the mesh settings has a caFile for")
		return nil, false
	}
	return out, true
}

// setVersions leaves to the proxy what it would choose itself.
func setVersions(t *ir.ServerTLS) {
	old := t.MaxVersion != "" && t.MaxVersion < ir.TLS12
	switch {
	case t.MinVersion == "" && old:
		t.MinVersion = t.MaxVersion // Its own choice would be newer.
	case t.MinVersion == ir.TLS12 && !old:
		t.MinVersion = ""
	}
	if t.MaxVersion == ir.TLS13 {
		t.MaxVersion = ""
	}
}

var tlsVersions = map[networking.ServerTLSSettings_TLSProtocol]ir.TLSVersion{
	networking.ServerTLSSettings_TLSV1_0: ir.TLS10, networking.ServerTLSSettings_TLSV1_1: ir.TLS11,
	networking.ServerTLSSettings_TLSV1_2: ir.TLS12, networking.ServerTLSSettings_TLSV1_3: ir.TLS13,
}

// certificatesOf are those that a server shows; without any, why.
func (p *plan) certificatesOf(tls *networking.ServerTLSSettings) (pairs []ir.KeyPair, why string) {
	if tls.GetMode() == networking.ServerTLSSettings_ISTIO_MUTUAL {
		own, lack := workloadFiles(p.settings)
		if lack != (unmet{}) {
			return nil, lack.why
		}
		return []ir.KeyPair{{CertificateFile: own.CertificateFile, KeyFile: own.KeyFile}}, ""
	}
	secrets := tls.GetCredentialNames()
	if tls.GetCredentialName() != "" {
		secrets = []string{tls.GetCredentialName()}
	}
	for _, secret := range secrets {
		pair := p.settings.IngressCertificates[secret]
		if pair.CertificateFile == "" || pair.KeyFile == "" {
			return nil, fmt.Sprintf("name serverCertificate and privateKey, or a credentialName that ingressCertificates of the mesh settings has files for, found %q", secret)
		}
		pairs = append(pairs, ir.KeyPair{CertificateFile: pair.CertificateFile, KeyFile: pair.KeyFile})
	}
	if len(secrets) > 0 {
		return pairs, ""
	}
	own := tls.GetTlsCertificates()
	if len(own) == 0 {
		own = []*networking.ServerTLSSettings_TLSCertificate{{ServerCertificate: tls.GetServerCertificate(), PrivateKey: tls.GetPrivateKey()}}
	}
	for _, c := range own {
		if c.GetServerCertificate() == "" || c.GetPrivateKey() == "" {
			return nil, "name serverCertificate and privateKey, or a credentialName that ingressCertificates of the mesh settings has files for"
		}
		pairs = append(pairs, ir.KeyPair{CertificateFile: c.GetServerCertificate(), KeyFile: c.GetPrivateKey()})
	}
	return pairs, ""
}

// clientCertificate is what a server asks of its clients, who are verified by its
// own file, else by that of a secret.
func (p *plan) clientCertificate(tls *networking.ServerTLSSettings) *ir.ClientCertificate {
	if tls.GetMode() == networking.ServerTLSSettings_ISTIO_MUTUAL {
		own, _ := workloadFiles(p.settings)
		return &ir.ClientCertificate{CAFile: own.CAFile, CRLFile: own.CRLFile, SubjectAltNames: tls.GetSubjectAltNames()}
	}
	out := &ir.ClientCertificate{
		CAFile:          tls.GetCaCertificates(),
		Optional:        tls.GetMode() == networking.ServerTLSSettings_OPTIONAL_MUTUAL,
		Unverified:      tls.GetInsecureSkipVerify().GetValue(),
		SubjectAltNames: tls.GetSubjectAltNames(), KeyHashes: tls.GetVerifyCertificateSpki(), CertificateHashes: tls.GetVerifyCertificateHash(),
	}
	if tls.GetCredentialName() == "" {
		out.CRLFile = tls.GetCaCrl()
	}
	if secret := tls.GetCaCertCredentialName(); secret != "" {
		own := p.settings.IngressCertificates[secret]
		out.CAFile, out.CRLFile = own.CAFile, cmp.Or(own.CRLFile, out.CRLFile)
		return out
	}
	if out.CAFile != "" && tls.GetCredentialName() == "" {
		return out
	}
	for _, secret := range append(tls.GetCredentialNames(), tls.GetCredentialName()) {
		if own := p.settings.IngressCertificates[secret]; out.CAFile == "" {
			out.CAFile, out.CRLFile = own.CAFile, cmp.Or(own.CRLFile, out.CRLFile)
		}
	}
	return out
}
