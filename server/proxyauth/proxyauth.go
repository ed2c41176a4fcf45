// Package proxyauth verifies which workload a proxy belongs to, and decides what the proxy
// may state about itself. It is the same for streams and for polls.
//
// Callers give it the credentials of a connection or request, and the node of the proxy. It
// returns a Proof, or an error that says why there is none. The package knows no
// configuration.
//
//	proxyauth.go  proofs and claims
//	grpc.go       the credentials of a gRPC request
//	crowd.go      bounds of the proxies and streams of one account
//	spiffe.go     the SPIFFE ID in a certificate
package proxyauth

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"

	"github.com/pilot-api/pilot-api/security/authn"
	"github.com/pilot-api/pilot-api/security/authz"
	"github.com/pilot-api/pilot-api/security/identity"
)

// Options configure a Prover. Certificates or Tokens is set. With both, a proxy that shows a
// certificate is proved by it, and any other one by its token.
type Options struct {
	// Certificates verifies client certificates with a SPIFFE ID, by which proxies prove
	// themselves.
	Certificates *authn.Certificates
	// Tokens verifies the tokens of proxies.
	Tokens *authn.Authenticator
	// TrustDomain is the trust domain of the SPIFFE IDs.
	TrustDomain string
	// Authorizer decides what a proxy may claim in addition to being a sidecar of its
	// namespace.
	Authorizer authz.Authorizer
	// MaxNodes bounds the proxies of one account at one time (DefaultMaxNodes), its streams
	// to twice as many, and its streams of secrets to 16 times as many.
	MaxNodes int
}

// Prover verifies proxies. It is safe for concurrent use.
type Prover struct {
	opts  Options
	crowd *crowd
}

// New returns a Prover.
func New(opts Options) *Prover {
	return &Prover{opts, newCrowd(cmp.Or(opts.MaxNodes, DefaultMaxNodes))}
}

// Credentials are the credentials that a proxy presents.
type Credentials struct {
	Context       context.Context
	TLS           *tls.ConnectionState // nil for plain text
	Authorization []string             // headers
	Address       string
	// Again says that they were proved before, for a stream that still runs.
	Again bool
}

// Proof identifies the workloads that a proxy belongs to: those of a service account.
type Proof struct {
	Namespace, Account string

	who identity.Identity
}

// Identity returns the identity of the service account.
func (p Proof) Identity() identity.Identity { return p.who }

// ErrUnproved means that a proxy has no valid proof.
var ErrUnproved = errors.New("the proxy does not prove itself")

// ErrUndecided means that it cannot be said now whether a proxy proves itself.
var ErrUndecided = errors.New("the proof of the proxy cannot be verified now")

// Prove verifies credentials and returns their proof at this time: a certificate of an open
// connection may have ended since. The error is ErrUnproved or ErrUndecided.
func (p *Prover) Prove(c Credentials) (Proof, error) {
	var proof Proof
	var err error
	if p.opts.Tokens == nil || p.opts.Certificates != nil && c.TLS != nil && len(c.TLS.VerifiedChains) > 0 {
		proof, err = p.byCertificate(c.TLS)
	} else {
		proof, err = p.byToken(c)
	}
	var failure *authn.Failure
	switch {
	case errors.As(err, &failure) && failure.Undecided:
		return Proof{}, fmt.Errorf("%w: %w", ErrUndecided, err)
	case err != nil:
		return Proof{}, fmt.Errorf("%w: %w", ErrUnproved, err)
	}
	return proof, nil
}

func (p *Prover) byCertificate(conn *tls.ConnectionState) (Proof, error) {
	if conn == nil || len(conn.VerifiedChains) == 0 {
		return Proof{}, errors.New("it shows no client certificate")
	}
	if err := p.opts.Certificates.Verify(conn); err != nil {
		return Proof{}, fmt.Errorf("its client certificate proves nothing: %w", err)
	}
	namespace, account, err := SPIFFE(conn.PeerCertificates[0].URIs, p.opts.TrustDomain)
	if err != nil {
		return Proof{}, fmt.Errorf("its client certificate is for no proxy: %w", err)
	}
	return Proof{namespace, account, identity.Identity{
		Name: authz.AccountName(namespace, account), Groups: append(authz.AccountGroups(namespace), identity.Authenticated), By: identity.ByCertificate,
	}}, nil
}

func (p *Prover) byToken(c Credentials) (Proof, error) {
	prove := p.opts.Tokens.Token
	if c.Again {
		prove = p.opts.Tokens.TokenAgain
	}
	who, err := prove(c.Context, c.Authorization, c.Address)
	if err != nil {
		return Proof{}, err
	}
	namespace, account, is := authn.AccountOf(who)
	if !is {
		return Proof{}, errors.New("its token is not one of a ServiceAccount")
	}
	return Proof{namespace, account, who}, nil
}

// Claim is the statement of a proxy about itself.
type Claim struct {
	Node      string // its id
	Namespace string
	Role      string
	// Labels means that the node states labels. Labels decide which Gateways and rules the
	// proxy gets.
	Labels bool
}

// sidecar is the role that needs no right.
const sidecar = "sidecar"

// ErrForbidden means that a proxy claims more than it may.
var ErrForbidden = errors.New("the proxy claims what it may not")

// Admit returns ErrForbidden unless a proven proxy may make a claim. The claim must be for
// the proxy's own namespace. A role other than sidecar needs the verb claim on proxies/ROLE
// there, and labels need it on proxies/labels. An account may have Options.MaxNodes proxies.
func (p *Prover) Admit(ctx context.Context, proof Proof, c Claim) error {
	if c.Namespace != proof.Namespace {
		return fmt.Errorf("%w: %s says that it is of namespace %q, and its proof is for %q", ErrForbidden, c.Node, c.Namespace, proof.Namespace)
	}
	var claimed []string
	if c.Role != sidecar {
		claimed = append(claimed, c.Role)
	}
	if c.Labels {
		claimed = append(claimed, "labels")
	}
	for _, what := range claimed {
		a := authz.Attributes{Verb: authz.VerbClaim, Group: "registry.istio.io", Resource: "proxies", Subresource: what, Namespace: proof.Namespace, Name: proof.Account}
		if d := p.opts.Authorizer.Authorize(ctx, proof.who, a); !d.Allowed {
			return fmt.Errorf("%w: %s: user %q cannot %s", ErrForbidden, c.Node, proof.who.Name, a)
		}
	}
	return p.crowd.see(proof.who.Name, c.Node)
}

// Open counts a stream of a proven proxy until the caller calls closed. It returns
// ErrForbidden if the account of the proxy has the most streams already.
func (p *Prover) Open(proof Proof, node string) (closed func(), err error) {
	return p.crowd.open(proof.who.Name, node)
}

// OpenSecrets is Open for a stream that has only secrets.
func (p *Prover) OpenSecrets(proof Proof) (closed func(), err error) {
	return p.crowd.openSecrets(proof.who.Name)
}
