package authn

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/pilot-api/pilot-api/security/identity"
)

// CertificateOptions configure Certificates.
type CertificateOptions struct {
	// Authorities returns the authorities in use. A certificate of others proves nothing,
	// also on a connection that began when they were in use.
	Authorities func() *x509.CertPool
	// CRLFile is a file with lists of revoked certificates in PEM; "" for none.
	CRLFile string
	Log     *slog.Logger
}

// Certificates proves client certificates: the common name is the user, and the
// organizations are the groups. The TLS handshake has verified the certificate, so it is
// verified again only when the authorities or the lists of revoked certificates change.
type Certificates struct {
	opts    CertificateOptions
	revoked *followedFile[[]*x509.RevocationList] // nil for none

	mu sync.Mutex
	// recent has the certificates that were verified under the present authorities and
	// lists, by the leaf that their connection has.
	recent      map[*x509.Certificate]error
	authorities *x509.CertPool
	lists       uint64
}

// mostRecent bounds the verified certificates that are remembered.
const mostRecent = 8192

// NewCertificates reads the file of the options.
func NewCertificates(opts CertificateOptions) (*Certificates, error) {
	c := &Certificates{opts: opts, recent: map[*x509.Certificate]error{}}
	if opts.CRLFile == "" {
		return c, nil
	}
	var err error
	c.revoked, err = follow("--client-crl", opts.CRLFile, parseRevoked, opts.Log)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// Run follows the file until ctx ends.
func (c *Certificates) Run(ctx context.Context) error {
	if c.revoked == nil {
		<-ctx.Done()
		return ctx.Err()
	}
	return c.revoked.run(ctx)
}

// identity returns who a connection with a verified certificate is.
func (c *Certificates) identity(conn *tls.ConnectionState) (identity.Identity, error) {
	leaf := conn.VerifiedChains[0][0]
	if now := time.Now(); now.After(leaf.NotAfter) {
		return identity.Identity{}, fmt.Errorf("it ended at %s", leaf.NotAfter.UTC().Format(time.RFC3339))
	}
	if err := c.check(conn); err != nil {
		return identity.Identity{}, err
	}
	if leaf.Subject.CommonName == "" {
		return identity.Identity{}, errors.New("it has no common name, which would be the user")
	}
	return identity.Identity{
		Name: leaf.Subject.CommonName, By: identity.ByCertificate,
		Groups: append(slices.Clone(leaf.Subject.Organization), identity.Authenticated),
	}, nil
}

// check verifies a certificate under the present authorities and lists.
func (c *Certificates) check(conn *tls.ConnectionState) error {
	leaf, pool, lists := conn.VerifiedChains[0][0], c.opts.Authorities(), uint64(0)
	if c.revoked != nil {
		lists = c.revoked.changes.Load()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.authorities != pool || c.lists != lists || len(c.recent) >= mostRecent {
		clear(c.recent)
		c.authorities, c.lists = pool, lists
	}
	err, known := c.recent[leaf]
	if !known {
		err = c.verify(conn, pool)
		c.recent[leaf] = err
	}
	return err
}

func (c *Certificates) verify(conn *tls.ConnectionState, pool *x509.CertPool) error {
	if pool == nil {
		return errors.New("no authority is known")
	}
	between := x509.NewCertPool()
	for _, one := range conn.PeerCertificates[1:] {
		between.AddCert(one)
	}
	chains, err := conn.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: pool, Intermediates: between, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	if err != nil {
		return err
	}
	if c.revoked == nil {
		return nil
	}
	for _, chain := range chains {
		if err = revokedIn(chain, c.revoked.get()); err == nil {
			return nil
		}
	}
	return err
}

// revokedIn returns an error if a certificate of a chain is on a list of its issuer.
func revokedIn(chain []*x509.Certificate, lists []*x509.RevocationList) error {
	for i, certificate := range chain[:len(chain)-1] {
		issuer := chain[i+1]
		for _, list := range lists {
			if list.CheckSignatureFrom(issuer) != nil {
				continue
			}
			for _, entry := range list.RevokedCertificateEntries {
				if entry.SerialNumber.Cmp(certificate.SerialNumber) == 0 {
					return fmt.Errorf("it was revoked at %s", entry.RevocationTime.UTC().Format(time.RFC3339))
				}
			}
		}
	}
	return nil
}

// parseRevoked reads lists of revoked certificates in PEM.
func parseRevoked(text []byte) ([]*x509.RevocationList, error) {
	var lists []*x509.RevocationList
	for {
		block, rest := pem.Decode(text)
		if block == nil {
			break
		}
		text = rest
		if block.Type != "X509 CRL" {
			return nil, fmt.Errorf("must have blocks X509 CRL only, found %s", block.Type)
		}
		list, err := x509.ParseRevocationList(block.Bytes)
		if err != nil {
			return nil, err
		}
		lists = append(lists, list)
	}
	if len(lists) == 0 {
		return nil, errors.New("no list of revoked certificates is in it (PEM, X509 CRL)")
	}
	return lists, nil
}
