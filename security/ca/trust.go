package ca

import (
	"context"
	"crypto"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"slices"
	"strings"
	"time"
)

// Trust has the roots that the workloads of a mesh trust at one time, and the issuer that
// signs their certificates. It never changes.
type Trust struct {
	// Roots are the authorities that workloads trust, the oldest first.
	Roots []*x509.Certificate
	// Issuer signs certificates; nil if none can be signed. Lack then says why.
	Issuer *Issuer
	Lack   string

	// Lists are the lists of revoked certificates of the roots, and ListsPEM is the same in
	// PEM. Either all roots have one or none has. Revocations counts all revocations.
	Lists       []*x509.RevocationList
	ListsPEM    string
	Revocations int64

	revoked  int                  // certificates that have not ended
	next     Step                 // of the rotation; "" for none
	lastEnds map[string]time.Time // of the certificates that authorities may have signed, by name
	// cover makes all servers know that the issuer signs a certificate with an end; nil if they
	// need not.
	cover func(ctx context.Context, end time.Time) error
}

// covered makes sure that all servers know that the issuer signs a certificate with an end.
func (t *Trust) covered(ctx context.Context, end time.Time) error {
	if t.cover == nil || !end.After(t.lastEnds[Name(t.Issuer.Root)]) {
		return nil
	}
	return t.cover(ctx, end)
}

// RootNames returns the names of the roots, with commas.
func (t *Trust) RootNames() string {
	var names []string
	for _, root := range t.Roots {
		names = append(names, Name(root))
	}
	return strings.Join(names, ",")
}

// Issuer signs certificates.
type Issuer struct {
	// Chain begins with the certificate of Key. The others lead to Root, which is not part of
	// it unless it signs itself.
	Chain   []*x509.Certificate
	Root    *x509.Certificate
	key     crypto.Signer
	serials serials
}

// Name returns the name of an authority: the beginning of its fingerprint (SHA-256).
func Name(c *x509.Certificate) string {
	sum := sha256.Sum256(c.Raw)
	return hex.EncodeToString(sum[:8])
}

// Trusts reports whether an authority is one of the roots.
func (t *Trust) Trusts(root *x509.Certificate) bool {
	return slices.ContainsFunc(t.Roots, root.Equal)
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
