package schema

import (
	networking "istio.io/api/networking/v1alpha3"
)

func hasCertificate(t *networking.ServerTLSSettings) bool {
	return t.ServerCertificate != "" || t.PrivateKey != "" || t.CaCertificates != "" || t.CaCrl != "" ||
		t.CredentialName != "" || len(t.CredentialNames) > 0 || len(t.TlsCertificates) > 0
}

// serverTLS checks the requirements of each mode of a Gateway. The JSON Schema
// checks that certificates come from one source.
func (p *problems) serverTLS(field string, t *networking.ServerTLSSettings) {
	switch t.Mode {
	case networking.ServerTLSSettings_PASSTHROUGH, networking.ServerTLSSettings_AUTO_PASSTHROUGH:
		if hasCertificate(t) {
			p.warn(field+".mode", t.Mode.String()+" does not end TLS here, so the certificates have no effect")
		}
	case networking.ServerTLSSettings_ISTIO_MUTUAL:
		if hasCertificate(t) {
			p.forbidden(field, "cannot name certificates with mode ISTIO_MUTUAL, which uses those of the mesh")
		}
	case networking.ServerTLSSettings_MUTUAL, networking.ServerTLSSettings_OPTIONAL_MUTUAL:
		p.serverCertificates(field, t)
		if t.CaCertificates == "" && t.CredentialName == "" && len(t.CredentialNames) == 0 {
			p.required(field+".caCertificates", "must be given with mode "+t.Mode.String()+" for certificates from files: clients are checked against them")
		}
	default:
		p.serverCertificates(field, t)
	}
	p.revocation(field+".caCrl", t)
	p.oldTLS(field+".minProtocolVersion", t)
}

func (p *problems) serverCertificates(field string, t *networking.ServerTLSSettings) {
	switch {
	case t.CredentialName != "" && (t.ServerCertificate != "" || t.PrivateKey != ""):
		p.warn(field+".serverCertificate", "has no effect together with credentialName")
	case t.CredentialName != "" || len(t.CredentialNames) > 0:
	case len(t.TlsCertificates) > 0:
		for i, c := range t.TlsCertificates {
			p.certificatePair(indexField(field+".tlsCertificates", i), "serverCertificate", c.ServerCertificate, c.PrivateKey)
		}
	default:
		p.certificatePair(field, "serverCertificate", t.ServerCertificate, t.PrivateKey)
	}
}

func (p *problems) certificatePair(field, name, certificate, key string) {
	const why = "must be given for this mode, unless a credentialName is"
	if certificate == "" {
		p.required(field+"."+name, why)
	}
	if key == "" {
		p.required(field+".privateKey", why)
	}
}

func (p *problems) revocation(field string, t *networking.ServerTLSSettings) {
	switch {
	case t.CaCrl == "":
	case t.CredentialName != "":
		p.warn(field, "has no effect together with credentialName: the list belongs into the secret")
	case t.Mode == networking.ServerTLSSettings_SIMPLE:
		p.forbidden(field, "cannot be given with mode SIMPLE, which asks clients for no certificate")
	}
}

func (p *problems) oldTLS(field string, t *networking.ServerTLSSettings) {
	old := t.MinProtocolVersion == networking.ServerTLSSettings_TLSV1_0 || t.MinProtocolVersion == networking.ServerTLSSettings_TLSV1_1
	if old && len(t.CipherSuites) == 0 {
		p.warn(field, "has no effect without cipherSuites: no cipher of the default list works with so old a version")
	}
}

// clientTLS checks the requirements of each mode of a DestinationRule.
func (p *problems) clientTLS(field string, t *networking.ClientTLSSettings) {
	switch t.GetMode() {
	case networking.ClientTLSSettings_SIMPLE:
		p.clientFiles(field, t)
	case networking.ClientTLSSettings_MUTUAL:
		p.clientFiles(field, t)
		if t.CredentialName == "" {
			p.certificatePair(field, "clientCertificate", t.ClientCertificate, t.PrivateKey)
		}
	case networking.ClientTLSSettings_ISTIO_MUTUAL:
		if t.ClientCertificate != "" || t.PrivateKey != "" || t.CaCertificates != "" || t.CredentialName != "" {
			p.warn(field+".mode", "ISTIO_MUTUAL uses the certificates of the mesh; those named here have no effect")
		}
	}
}

func (p *problems) clientFiles(field string, t *networking.ClientTLSSettings) {
	secret, unchecked := t.CredentialName != "", t.GetInsecureSkipVerify().GetValue()
	for _, f := range []struct {
		name   string
		set    bool
		checks bool
	}{
		{"clientCertificate", t.ClientCertificate != "", false},
		{"privateKey", t.PrivateKey != "", false},
		{"caCertificates", t.CaCertificates != "", true},
		{"caCrl", t.CaCrl != "", false},
		{"subjectAltNames", len(t.SubjectAltNames) > 0, true},
	} {
		if f.set && secret && f.name != "subjectAltNames" {
			p.forbidden(field+"."+f.name, "cannot be given together with credentialName: the secret holds all certificates")
		}
		if f.set && unchecked && f.checks {
			p.forbidden(field+"."+f.name, "cannot be given together with insecureSkipVerify: the server is not checked then")
		}
	}
	if unchecked && secret && t.Mode == networking.ClientTLSSettings_SIMPLE {
		p.forbidden(field+".credentialName", "cannot be given together with insecureSkipVerify: the server is not checked then")
	}
}
