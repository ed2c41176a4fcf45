package authn

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pilot-api/pilot-api/security/identity"
)

// TokenVerifier proves tokens of one kind. It must be safe for concurrent use.
type TokenVerifier interface {
	// Verify returns the identity of a token, and until when the result may be used. The
	// error is ErrOtherToken for a token of another kind.
	Verify(ctx context.Context, token string) (identity.Identity, time.Time, error)
	// Epoch changes when results of Verify may no longer be right.
	Epoch() uint64
}

// ErrOtherToken means that a token is not of the kind that a TokenVerifier proves.
var ErrOtherToken = errors.New("this is a token of another kind")

// Options configure an Authenticator.
type Options struct {
	// Certificates proves client certificates; nil means that none prove anything.
	Certificates *Certificates
	// Tokens are tried in this order.
	Tokens []TokenVerifier
	// Anonymous is the identity of requests without a proof; nil refuses them.
	Anonymous *identity.Identity
	Log       *slog.Logger
	Registry  prometheus.Registerer // nil drops the metrics
}

// Authenticator proves who sends requests. It is safe for concurrent use.
type Authenticator struct {
	opts      Options
	verified  *verifiedTokens
	penalties *penalties
	metrics   *metrics
}

// New returns an Authenticator.
func New(opts Options) *Authenticator {
	opts.Log = cmp.Or(opts.Log, slog.New(slog.DiscardHandler))
	return &Authenticator{opts: opts, verified: newVerifiedTokens(), penalties: newPenalties(time.Now), metrics: newMetrics(opts.Registry)}
}

// Failure is why a request proves nobody. Its text is for the client, and contains
// nothing of a token.
type Failure struct {
	Reason string
	// RetryAfter is set if the address of the client sends too many wrong tokens.
	RetryAfter time.Duration
}

func (f *Failure) Error() string { return f.Reason }

// Challenge returns the value of the WWW-Authenticate header.
func (f *Failure) Challenge() string {
	return fmt.Sprintf(`Bearer realm="pilot-api", error="invalid_token", error_description=%q`, strings.ReplaceAll(f.Reason, `"`, "'"))
}

// MaxToken bounds a token, in bytes.
const MaxToken = 16 << 10

// Authenticate returns who sends a request. A client certificate counts first, then a
// bearer token. A token that proves nothing is an error, even if anonymous requests are
// allowed: the client means to be somebody. The error is a *Failure.
func (a *Authenticator) Authenticate(r *http.Request) (identity.Identity, error) {
	who, err := a.authenticate(r.Context(), r.TLS, r.Header.Values("Authorization"), r.RemoteAddr)
	a.metrics.count(who, err)
	return who, err
}

func (a *Authenticator) authenticate(ctx context.Context, conn *tls.ConnectionState, authorization []string, address string) (identity.Identity, error) {
	if a.opts.Certificates != nil && conn != nil && len(conn.VerifiedChains) > 0 {
		who, err := a.opts.Certificates.identity(conn)
		if err != nil {
			return identity.Identity{}, &Failure{Reason: "the client certificate proves nothing: " + err.Error()}
		}
		return who, nil
	}
	token, err := bearer(authorization)
	switch {
	case err != nil:
		return identity.Identity{}, err
	case token != "":
		return a.verify(ctx, token, address)
	case a.opts.Anonymous != nil:
		return *a.opts.Anonymous, nil
	}
	return identity.Identity{}, &Failure{Reason: "nothing proves who sends this: " + a.accepted()}
}

// Token returns whose token is in Authorization headers, for requests that are not of HTTP.
// The error is a *Failure.
func (a *Authenticator) Token(ctx context.Context, authorization []string, address string) (identity.Identity, error) {
	who, err := a.authenticate(ctx, nil, authorization, address)
	a.metrics.count(who, err)
	return who, err
}

// bearer returns the token of the Authorization headers, "" if there is none.
func bearer(headers []string) (string, error) {
	switch {
	case len(headers) == 0:
		return "", nil
	case len(headers) > 1:
		return "", &Failure{Reason: "Authorization: must be given once"}
	}
	scheme, token, _ := strings.Cut(headers[0], " ")
	token = strings.TrimSpace(token)
	switch {
	case !strings.EqualFold(scheme, "Bearer"):
		return "", &Failure{Reason: "Authorization: must be Bearer and a token"}
	case token == "":
		return "", &Failure{Reason: "Authorization: the token is empty"}
	case len(token) > MaxToken:
		return "", &Failure{Reason: fmt.Sprintf("Authorization: the token is longer than %d bytes", MaxToken)}
	}
	return token, nil
}

// verify proves a token. An address that sends many wrong tokens has to wait; tokens that
// were proved before are accepted from it all the same.
func (a *Authenticator) verify(ctx context.Context, token, address string) (identity.Identity, error) {
	if who, ok := a.verified.find(token); ok {
		return who, nil
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = address
	}
	if wait := a.penalties.wait(host); wait > 0 {
		return identity.Identity{}, &Failure{Reason: "too many wrong tokens came from this address", RetryAfter: wait}
	}
	var wrong error
	for _, source := range a.opts.Tokens {
		epoch := source.Epoch()
		who, until, err := source.Verify(ctx, token)
		if err == nil {
			a.verified.keep(token, who, until, source, epoch)
			return who, nil
		}
		if !errors.Is(err, ErrOtherToken) {
			wrong = err
		}
	}
	a.penalties.add(host)
	if wrong == nil {
		return identity.Identity{}, &Failure{Reason: "the token is of no kind that is accepted here: " + a.accepted()}
	}
	return identity.Identity{}, &Failure{Reason: "the token proves nothing: " + wrong.Error()}
}

// accepted says which proofs are accepted.
func (a *Authenticator) accepted() string {
	var proofs []string
	if a.opts.Certificates != nil {
		proofs = append(proofs, "a client certificate")
	}
	if len(a.opts.Tokens) > 0 {
		proofs = append(proofs, "a token (Authorization: Bearer)")
	}
	if len(proofs) == 0 {
		return "no proof is accepted"
	}
	return "send " + strings.Join(proofs, " or ")
}
