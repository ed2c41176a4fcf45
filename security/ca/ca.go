package ca

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spiffe/go-spiffe/v2/spiffeid"
	"golang.org/x/time/rate"
)

// The defaults of Options.
const (
	DefaultTTL    = 24 * time.Hour
	DefaultMaxTTL = 90 * 24 * time.Hour
	DefaultSkew   = 10 * time.Minute
)

// Bounds of the certificates of one account: so many at once, and so many a second after that.
const (
	accountBurst = 1000
	accountRate  = 50
	// mostAccounts bounds the accounts that are counted, some 100 bytes each.
	mostAccounts = 1 << 14
)

// Options configure a CA.
type Options struct {
	// TrustDomain is that of the SPIFFE IDs.
	TrustDomain string
	// TTL is how long a certificate lasts if its owner does not ask for a time; MaxTTL is the
	// longest time; Skew is how long before now a certificate begins. 0 means the default.
	TTL, MaxTTL, Skew time.Duration
	Log               *slog.Logger
	Registry          prometheus.Registerer // nil drops the metrics
}

// CA signs certificates of workloads by the authority in use. Make it with New. It is safe for
// concurrent use.
type CA struct {
	opts    Options
	domain  spiffeid.TrustDomain
	trust   atomic.Pointer[Trust]
	metrics *metrics

	mu       sync.Mutex
	changed  chan struct{}
	accounts map[string]*rate.Limiter
}

// New returns a CA that has no authority yet. The error is about the trust domain.
func New(opts Options) (*CA, error) {
	domain, err := spiffeid.TrustDomainFromString(opts.TrustDomain)
	if err != nil {
		return nil, fmt.Errorf("trust domain %q: %w", opts.TrustDomain, err)
	}
	opts.TTL, opts.MaxTTL, opts.Skew = cmp.Or(opts.TTL, DefaultTTL), cmp.Or(opts.MaxTTL, DefaultMaxTTL), cmp.Or(opts.Skew, DefaultSkew)
	c := &CA{opts: opts, domain: domain, changed: make(chan struct{}), accounts: map[string]*rate.Limiter{}}
	c.metrics = newMetrics(opts.Registry, c)
	return c, nil
}

// Trust returns the authorities in use, and a channel that is closed when there are others.
// Before the first ones are known, the trust is nil.
func (c *CA) Trust() (*Trust, <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.trust.Load(), c.changed
}

// SetTrust replaces the authorities in use.
func (c *CA) SetTrust(t *Trust) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.trust.Store(t)
	close(c.changed)
	c.changed = make(chan struct{})
}

// Account is the ServiceAccount of a workload.
type Account struct{ Namespace, Name string }

// ID returns the SPIFFE ID of an account, as Istio writes it.
func (c *CA) ID(a Account) (spiffeid.ID, error) {
	return spiffeid.FromSegments(c.domain, "ns", a.Namespace, "sa", a.Name)
}

// Issued is a signed certificate.
type Issued struct {
	// Chain begins with the new certificate. The others lead to a root, which is not part of
	// it.
	Chain []*x509.Certificate
	Roots []*x509.Certificate
	// Issuer signed the certificate.
	Issuer *x509.Certificate
}

// Leaf is the new certificate.
func (i *Issued) Leaf() *x509.Certificate { return i.Chain[0] }

// Serial returns the serial number in hexadecimal.
func (i *Issued) Serial() string { return i.Leaf().SerialNumber.Text(16) }

// PEM returns the certificates of the chain, one text for each, and last all roots in one.
func (i *Issued) PEM() []string {
	var out []string
	for _, one := range i.Chain {
		out = append(out, certificatesPEM([]*x509.Certificate{one}))
	}
	return append(out, certificatesPEM(i.Roots))
}

// ErrNoIssuer means that this server cannot sign now. Another one may.
var ErrNoIssuer = errors.New("this server cannot sign certificates")

// ErrTooMany means that an account has asked for more certificates than it may for now.
var ErrTooMany = errors.New("the account asks for too many certificates: try again later")

// Sign returns a certificate for an account, for the key of a request in PEM. It lasts for ttl,
// or Options.TTL if ttl is 0. The caller must have proved that the request comes from the
// account. The error is a *Refusal, ErrNoIssuer or ErrTooMany.
func (c *CA) Sign(ctx context.Context, request string, owner Account, ttl time.Duration) (*Issued, error) {
	issued, err := c.sign(ctx, request, owner, ttl)
	c.metrics.count(err)
	return issued, err
}

func (c *CA) sign(ctx context.Context, request string, owner Account, ttl time.Duration) (*Issued, error) {
	id, err := c.ID(owner)
	if err != nil {
		return nil, refuse("%s/%s can be no part of a SPIFFE ID: %v", owner.Namespace, owner.Name, err)
	}
	if ttl < 0 || ttl > c.opts.MaxTTL {
		return nil, refuse("a certificate may last at most %v, not %v", c.opts.MaxTTL, ttl)
	}
	if !c.allow(owner) {
		return nil, ErrTooMany
	}
	key, err := parseRequest(request, id)
	if err != nil {
		return nil, err
	}
	trust := c.trust.Load()
	switch {
	case trust == nil:
		return nil, fmt.Errorf("%w: its authority is not known yet", ErrNoIssuer)
	case trust.Issuer == nil:
		return nil, fmt.Errorf("%w: %s", ErrNoIssuer, trust.Lack)
	}
	issued, err := c.issue(trust, key, id, cmp.Or(ttl, c.opts.TTL))
	if err == nil {
		err = trust.covered(ctx, issued.Leaf().NotAfter)
	}
	if err != nil {
		return nil, err
	}
	return issued, nil
}

// issue signs a certificate. It ends with its issuers at the latest.
func (c *CA) issue(trust *Trust, key any, id spiffeid.ID, ttl time.Duration) (*Issued, error) {
	now, by := time.Now(), trust.Issuer
	end := now.Add(ttl)
	for _, one := range append([]*x509.Certificate{by.Root}, by.Chain...) {
		if one.NotAfter.Before(end) {
			end = one.NotAfter
		}
	}
	if !now.Before(end) {
		return nil, fmt.Errorf("%w: its own certificate ended at %s", ErrNoIssuer, end.UTC().Format(time.RFC3339))
	}
	template := &x509.Certificate{
		SerialNumber: by.serials.next(), NotBefore: now.Add(-c.opts.Skew), NotAfter: end, URIs: []*url.URL{id.URL()},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		BasicConstraintsValid: true,
	}
	if _, is := key.(*rsa.PublicKey); is {
		template.KeyUsage |= x509.KeyUsageKeyEncipherment
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, by.Chain[0], key, by.key)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoIssuer, err)
	}
	leaf, err := x509.ParseCertificate(raw)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoIssuer, err)
	}
	return &Issued{Chain: append([]*x509.Certificate{leaf}, by.between()...), Roots: trust.Roots, Issuer: by.Chain[0]}, nil
}

// between returns the chain without the root.
func (i *Issuer) between() []*x509.Certificate {
	if last := len(i.Chain) - 1; i.Chain[last].Equal(i.Root) {
		return i.Chain[:last]
	}
	return i.Chain
}

// allow reports whether an account may have one more certificate now.
func (c *CA) allow(owner Account) bool {
	name := owner.Namespace + "/" + owner.Name
	c.mu.Lock()
	limit := c.accounts[name]
	if limit == nil {
		if len(c.accounts) >= mostAccounts {
			clear(c.accounts)
		}
		limit = rate.NewLimiter(accountRate, accountBurst)
		c.accounts[name] = limit
	}
	c.mu.Unlock()
	return limit.Allow()
}
