package authn

import (
	"context"
	"crypto/sha256"
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
	// Lists returns further lists of revoked certificates, and a number that grows with each
	// change of them; nil for none.
	Lists func() (lists []*x509.RevocationList, changes int64)
	Log   *slog.Logger
}

// Certificates proves client certificates: the common name is the user, and the
// organizations are the groups. The TLS handshake has verified the certificate, so it is
// verified again only when it may have ended, or the authorities or the lists of revoked
// certificates change. It is safe for concurrent use.
type Certificates struct {
	opts    CertificateOptions
	revoked *followedFile[[]*x509.RevocationList] // nil for none

	mu sync.Mutex
	// recent has the verdicts under the present authorities and lists.
	recent map[shown]verdict
	trust
}

// trust is what a verdict depends on, besides the time.
type trust struct {
	authorities *x509.CertPool
	lists       uint64 // changes of the lists of revoked certificates
	further     int64  // the same of CertificateOptions.Lists
}

// shown is the hash of the certificates that a client shows. Connections show the same
// certificates more than once, and a hash keeps none of them in memory.
type shown [sha256.Size]byte

func shownBy(conn *tls.ConnectionState) (sum shown) {
	hash := sha256.New()
	for _, one := range conn.PeerCertificates {
		hash.Write(one.Raw)
	}
	hash.Sum(sum[:0])
	return sum
}

// verdict is the result of a verification, which counts until a time.
type verdict struct {
	err   error
	until time.Time
}

const (
	// mostRecent bounds the verdicts that are remembered, some 100 bytes each. It is more than
	// the connections of all listeners.
	mostRecent = 1 << 17
	// refusedFor is how long a refusal is remembered: a certificate may become valid.
	refusedFor = time.Minute
)

// NewCertificates reads the file of the options.
func NewCertificates(opts CertificateOptions) (*Certificates, error) {
	c := &Certificates{opts: opts, recent: map[shown]verdict{}}
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
	if err := c.Verify(conn); err != nil {
		return identity.Identity{}, err
	}
	leaf := conn.PeerCertificates[0]
	if leaf.Subject.CommonName == "" {
		return identity.Identity{}, errors.New("it has no common name, which would be the user")
	}
	return identity.Identity{
		Name: leaf.Subject.CommonName, By: identity.ByCertificate,
		Groups: append(slices.Clone(leaf.Subject.Organization), identity.Authenticated),
	}, nil
}

// Verify returns an error unless the client certificate of a connection counts now: the
// handshake verified it, it has not ended, the present authorities issued it, and no list has
// it. Most calls take a microsecond, because verdicts are remembered.
func (c *Certificates) Verify(conn *tls.ConnectionState) error {
	if conn == nil || len(conn.VerifiedChains) == 0 {
		return errors.New("the handshake has verified none")
	}
	now, in, by := time.Now(), shownBy(conn), trust{authorities: c.opts.Authorities()}
	if c.revoked != nil {
		by.lists = c.revoked.changes.Load()
	}
	var lists []*x509.RevocationList
	if c.opts.Lists != nil {
		lists, by.further = c.opts.Lists()
	}
	if known, ok := c.remembered(in, by); ok && !now.After(known.until) {
		return known.err
	}
	if c.revoked != nil {
		lists = append(slices.Clone(lists), c.revoked.get()...)
	}
	found := verify(conn, by.authorities, lists, now)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.trust == by {
		c.recent[in] = found
	}
	return found.err
}

// remembered returns the verdict on some certificates.
func (c *Certificates) remembered(in shown, by trust) (verdict, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.trust != by || len(c.recent) >= mostRecent {
		clear(c.recent)
		c.trust = by
	}
	known, ok := c.recent[in]
	return known, ok
}

func verify(conn *tls.ConnectionState, pool *x509.CertPool, lists []*x509.RevocationList, now time.Time) verdict {
	refused := func(err error) verdict { return verdict{err, now.Add(refusedFor)} }
	leaf := conn.PeerCertificates[0]
	switch {
	case now.After(leaf.NotAfter):
		return refused(fmt.Errorf("it ended at %s", leaf.NotAfter.UTC().Format(time.RFC3339)))
	case pool == nil:
		return refused(errors.New("no authority is known"))
	}
	between := x509.NewCertPool()
	for _, one := range conn.PeerCertificates[1:] {
		between.AddCert(one)
	}
	chains, err := leaf.Verify(x509.VerifyOptions{Roots: pool, Intermediates: between, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	if err != nil {
		return refused(err)
	}
	var good verdict
	for _, chain := range chains {
		if err = revokedIn(chain, lists); err != nil {
			continue
		}
		if end := endOf(chain); end.After(good.until) {
			good.until = end
		}
	}
	if good.until.IsZero() {
		return refused(err)
	}
	return good
}

// endOf returns when the first certificate of a chain ends.
func endOf(chain []*x509.Certificate) time.Time {
	end := chain[0].NotAfter
	for _, one := range chain[1:] {
		if one.NotAfter.Before(end) {
			end = one.NotAfter
		}
	}
	return end
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
