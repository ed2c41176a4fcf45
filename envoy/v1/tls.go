package v1

import (
	"strings"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/ir"
)

// ServerTLS terminates TLS.
type ServerTLS struct {
	CertChainFile            string   `json:"cert_chain_file"`
	PrivateKeyFile           string   `json:"private_key_file"`
	CACertFile               string   `json:"ca_cert_file,omitempty"`
	VerifySubjectAltName     []string `json:"verify_subject_alt_name,omitempty"`
	RequireClientCertificate bool     `json:"require_client_certificate"`
	ALPNProtocols            string   `json:"alpn_protocols,omitempty"`
	CipherSuites             string   `json:"cipher_suites,omitempty"`
}

func serverTLS(t *ir.ServerTLS) *ServerTLS {
	if t == nil {
		return nil
	}
	out := &ServerTLS{
		CertChainFile:  t.CertificateFile,
		PrivateKeyFile: t.KeyFile,
		ALPNProtocols:  strings.Join(t.ALPN, ","),
		CipherSuites:   strings.Join(t.Ciphers, ":"),
	}
	if c := t.Client; c != nil {
		out.CACertFile, out.VerifySubjectAltName = c.CAFile, c.SubjectAltNames
		out.RequireClientCertificate = !c.Optional
	}
	return out
}

// lackingTLS says what v1 cannot require of clients, or returns "" if there is nothing.
func lackingTLS(t *ir.ServerTLS) string {
	if t == nil {
		return ""
	}
	c := t.Client
	if c == nil {
		c = &ir.ClientCertificate{}
	}
	switch {
	case t.UsesSecrets():
		return "certificates are files on the proxy's machine, not secrets"
	case t.MinVersion != "" || t.MaxVersion != "":
		return "versions of TLS are Envoy's own choice"
	case len(t.Others) > 0:
		return "a port has one certificate"
	case c.CRLFile != "":
		return "revocations are not looked up"
	case len(c.KeyHashes)+len(c.CertificateHashes) > 0:
		return "certificates of clients are not told apart by hashes"
	}
	return ""
}

// ClientTLS originates TLS. The zero value verifies nothing.
type ClientTLS struct {
	CertChainFile        string   `json:"cert_chain_file,omitempty"`
	PrivateKeyFile       string   `json:"private_key_file,omitempty"`
	CACertFile           string   `json:"ca_cert_file,omitempty"`
	VerifySubjectAltName []string `json:"verify_subject_alt_name,omitempty"`
	SNI                  string   `json:"sni,omitempty"`
}

func clientTLS(t *ir.ClientTLS) *ClientTLS {
	if t == nil {
		return nil
	}
	out := &ClientTLS{
		CertChainFile:        t.CertificateFile,
		PrivateKeyFile:       t.KeyFile,
		CACertFile:           t.CAFile,
		VerifySubjectAltName: t.SubjectAltNames,
		SNI:                  t.SNI,
	}
	if t.AutoSAN {
		out.VerifySubjectAltName = []string{t.SNI}
	}
	return out
}

// unverifiable says what v1 cannot verify of endpoints, in which case it must not call
// them. It returns "" if there is nothing.
func unverifiable(t *ir.ClientTLS) string {
	switch {
	case t == nil:
	case t.UsesSecrets():
		return "certificates are files on the proxy's machine, not secrets"
	case t.CRLFile != "":
		return "revocations are not looked up"
	case t.AutoSAN && t.SNI == "":
		return "certificates are not verified by the host that a request names; name it in subjectAltNames"
	}
	return ""
}

// namedOtherwise reports a server name that depends on the request: v1 begins TLS before
// it reads a request.
func namedOtherwise(c *ir.Cluster) diag.List {
	if c.TLS == nil || !c.TLS.AutoSNI {
		return nil
	}
	name := "no name"
	if c.TLS.SNI != "" {
		name = c.TLS.SNI
	}
	return diag.Warn(diag.NotHonoured, c.Origins, "Envoy v1 asks endpoints of %s for %s, whatever host a request names", c.Name, name)
}
