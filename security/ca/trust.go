package ca

import (
	"crypto"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"strings"
)

// Trust is what the workloads of a mesh trust at one time, and what signs their certificates.
// It never changes.
type Trust struct {
	// Roots are the authorities that workloads trust, the oldest first.
	Roots []*x509.Certificate
	// Issuer signs; nil if nothing can be signed. Lack then says why.
	Issuer *Issuer
	Lack   string
}

// Issuer signs certificates.
type Issuer struct {
	// Chain begins with the certificate of Key. The others lead to Root, which is not part of
	// it unless it signs itself.
	Chain []*x509.Certificate
	Root  *x509.Certificate
	key   crypto.Signer
}

// Name returns the name of an authority: the beginning of its fingerprint (SHA-256).
func Name(c *x509.Certificate) string {
	sum := sha256.Sum256(c.Raw)
	return hex.EncodeToString(sum[:8])
}

// Pool returns the roots as a pool.
func (t *Trust) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	for _, root := range t.Roots {
		pool.AddCert(root)
	}
	return pool
}

// RootsPEM returns the roots in PEM.
func (t *Trust) RootsPEM() string { return certificatesPEM(t.Roots) }

func certificatesPEM(list []*x509.Certificate) string {
	var out strings.Builder
	for _, c := range list {
		_ = pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: c.Raw}) // A Builder never fails.
	}
	return out.String()
}
