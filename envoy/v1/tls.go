package v1

import (
	"strings"

	"github.com/pilot-api/pilot-api/ir"
)

// ServerTLS terminates TLS.
type ServerTLS struct {
	CertChainFile            string `json:"cert_chain_file"`
	PrivateKeyFile           string `json:"private_key_file"`
	CACertFile               string `json:"ca_cert_file,omitempty"`
	RequireClientCertificate bool   `json:"require_client_certificate"`
	ALPNProtocols            string `json:"alpn_protocols,omitempty"`
}

func serverTLS(t *ir.ServerTLS) *ServerTLS {
	if t == nil {
		return nil
	}
	return &ServerTLS{
		CertChainFile:            t.CertificateFile,
		PrivateKeyFile:           t.KeyFile,
		CACertFile:               t.CAFile,
		RequireClientCertificate: t.CAFile != "",
		ALPNProtocols:            strings.Join(t.ALPN, ","),
	}
}

// ClientTLS originates TLS; the empty one verifies nothing.
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
		CertChainFile:  t.CertificateFile,
		PrivateKeyFile: t.KeyFile,
		CACertFile:     t.CAFile,
		SNI:            t.SNI,
	}
	if t.CAFile != "" {
		out.VerifySubjectAltName = t.SubjectAltNames
	}
	return out
}
