package compile

import (
	"cmp"
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/schema"
)

// gatewayTLS returns the TLS settings of a server that terminates TLS, or false if
// the server cannot be served.
//
// Secrets are looked up later (lackOfServer).
func (p *plan) gatewayTLS(ref diag.Ref, at string, tls *networking.ServerTLSSettings) (*ir.ServerTLS, bool) {
	if !schema.FollowsServerTLS(tls) {
		return nil, false
	}
	pairs, why := p.certificatesOf(tls, ref.Namespace)
	if len(pairs) == 0 {
		p.notHonoured(diag.TLSUnmet, ref, at, "the server is left out: "+why)
		return nil, false
	}
	out := &ir.ServerTLS{
		CertificateFile: pairs[0].CertificateFile, KeyFile: pairs[0].KeyFile, SecretName: pairs[0].SecretName, Others: pairs[1:],
		MinVersion: tlsVersions[tls.GetMinProtocolVersion()], MaxVersion: tlsVersions[tls.GetMaxProtocolVersion()],
		Ciphers: schema.KnownCiphers(tls.GetCipherSuites()),
	}
	if len(out.Others) == 0 {
		out.Others = nil
	}
	if tls.GetMode() == networking.ServerTLSSettings_ISTIO_MUTUAL {
		own, _ := workloadFiles(p.settings)
		out.SDS = own.sds
	}
	setVersions(out)
	if tls.GetMode() == networking.ServerTLSSettings_SIMPLE {
		return out, true
	}
	if out.Client = p.clientCertificate(tls, ref.Namespace); out.Client.CAFile == "" && out.Client.CASecretName == "" {
		p.notHonoured(diag.TLSUnmet, ref, at, "the server is left out, because no authorities verify clients: name caCertificates, or a credentialName")
		return nil, false
	}
	return out, true
}

// setVersions clears versions that the proxy would choose itself.
func setVersions(t *ir.ServerTLS) {
	old := t.MaxVersion != "" && t.MaxVersion < ir.TLS12
	switch {
	case t.MinVersion == "" && old:
		t.MinVersion = t.MaxVersion // The proxy's own choice would be newer.
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

// certificatesOf returns the certificates of a server in a namespace; if there are
// none, why says so.
func (rd *reader) certificatesOf(tls *networking.ServerTLSSettings, namespace string) (pairs []ir.KeyPair, why string) {
	if tls.GetMode() == networking.ServerTLSSettings_ISTIO_MUTUAL {
		own, lack := workloadFiles(rd.settings)
		if lack != (unmet{}) {
			return nil, lack.why
		}
		return []ir.KeyPair{{CertificateFile: own.CertificateFile, KeyFile: own.KeyFile, SecretName: own.secret}}, ""
	}
	secrets := tls.GetCredentialNames()
	if tls.GetCredentialName() != "" {
		secrets = []string{tls.GetCredentialName()}
	}
	for _, secret := range secrets {
		pair := rd.settings.IngressCertificates[secret]
		if pair.CertificateFile == "" || pair.KeyFile == "" {
			pairs = append(pairs, ir.KeyPair{SecretName: secretName(namespace, secret)})
			continue
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
			return nil, "name serverCertificate and privateKey, or a credentialName"
		}
		pairs = append(pairs, ir.KeyPair{CertificateFile: c.GetServerCertificate(), KeyFile: c.GetPrivateKey()})
	}
	return pairs, ""
}

// clientCertificate returns the requirements for client certificates. Clients are
// verified by the server's own file, else by that of a secret.
func (rd *reader) clientCertificate(tls *networking.ServerTLSSettings, namespace string) *ir.ClientCertificate {
	if tls.GetMode() == networking.ServerTLSSettings_ISTIO_MUTUAL {
		own, _ := workloadFiles(rd.settings)
		return &ir.ClientCertificate{CAFile: own.CAFile, CASecretName: own.caSecret, CRLFile: own.CRLFile, SubjectAltNames: tls.GetSubjectAltNames()}
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
		rd.verifyBy(out, secret, namespace)
		return out
	}
	if out.CAFile != "" && tls.GetCredentialName() == "" {
		return out
	}
	for _, secret := range append(tls.GetCredentialNames(), tls.GetCredentialName()) {
		if secret != "" && out.CAFile == "" && out.CASecretName == "" {
			rd.verifyBy(out, secret, namespace)
		}
	}
	return out
}

// verifyBy uses the authorities of a secret: its files on the proxies' machines or,
// if there are none, those that the control plane sends.
func (rd *reader) verifyBy(out *ir.ClientCertificate, secret, namespace string) {
	own, known := rd.settings.IngressCertificates[secret]
	out.CAFile, out.CRLFile = own.CAFile, cmp.Or(own.CRLFile, out.CRLFile)
	if !known {
		out.CASecretName = secretName(namespace, secret) + authorities
	}
}

// lackOfServer returns why a server cannot have the certificates that it names.
func (rd *reader) lackOfServer(tls *ir.ServerTLS) absence {
	const setting = "ingressCertificates"
	if tls == nil || tls.SDS != (ir.LocalSDS{}) {
		return absence{} // The secrets of a workload are no objects.
	}
	for _, pair := range append([]ir.KeyPair{{SecretName: tls.SecretName}}, tls.Others...) {
		if (pair.SecretName == "") != (tls.SecretName == "") {
			return absence{why: "of its credentialNames, " + setting + " of the mesh settings has files for some, but a proxy needs files for all or for none"}
		}
		if pair.SecretName == "" {
			continue
		}
		if l := rd.lackOfPair(pair.SecretName, setting); l.why != "" {
			return l
		}
	}
	if c := tls.Client; c != nil && c.CASecretName != "" {
		return rd.lackOfAuthorities(strings.TrimSuffix(c.CASecretName, authorities), setting)
	}
	return absence{}
}
