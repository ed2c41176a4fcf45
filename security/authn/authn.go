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
	// Verify returns the identity of a token, and the time until which the result may be
	// used. The error is ErrOtherToken for a token of another kind, and ErrUndecided if the
	// verifier has no keys for it now.
	Verify(ctx context.Context, token string) (identity.Identity, time.Time, error)
	// Epoch returns a number that changes when earlier results of Verify may no longer be
	// right.
	Epoch() uint64
}

// ErrOtherToken means that a token is not of the kind that a TokenVerifier proves.
var ErrOtherToken = errors.New("this is a token of another kind")

// ErrUndecided means that it cannot be said now whether a token proves somebody.
var ErrUndecided = errors.New("it cannot be verified now")

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

// Authenticator verifies the senders of requests. It is safe for concurrent use.
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

// Failure is the reason why a request proves no identity. Its text is for the client, and
// contains nothing of a token.
type Failure struct {
	Reason string
	// Undecided means that the token may be good, but the keys to verify it are not
	// available now.
	Undecided bool
	// RetryAfter is set if the address of the client sends too many wrong tokens, and with
	// Undecided.
	RetryAfter time.Duration
}

func (f *Failure) Error() string { return f.Reason }

// Challenge returns the value of the WWW-Authenticate header.
func (f *Failure) Challenge() string {
	return fmt.Sprintf(`Bearer realm="pilot-api", error="invalid_token", error_description=%q`, strings.ReplaceAll(f.Reason, `"`, "'"))
}

// MaxToken bounds a token, in bytes.
const MaxToken = 16 << 10

// Authenticate returns the identity of the sender of a request. A client certificate counts
// first, then a bearer token. A token that proves nothing is an error, even if anonymous
// requests are allowed, because the client claims an identity. The error is a *Failure.
func (a *Authenticator) Authenticate(r *http.Request) (identity.Identity, error) {
	who, err := a.authenticate(r.Context(), r.TLS, r.Header.Values("Authorization"), caller{r.RemoteAddr, false})
	a.metrics.count(who, err)
	return who, err
}

// Again is Authenticate for a request that was proved and is still being answered. It is not
// counted as another request, and wrong tokens of others at its address do not slow it down.
// While its token cannot be verified, the last result counts longestUndecided longer, but not
// beyond the end of the token.
func (a *Authenticator) Again(r *http.Request) (identity.Identity, error) {
	return a.authenticate(r.Context(), r.TLS, r.Header.Values("Authorization"), caller{r.RemoteAddr, true})
}

// caller is where a proof comes from.
type caller struct {
	address string
	// again says that the proof is looked at again.
	again bool
}

// host returns the address without the port.
func (c caller) host() string {
	host, _, err := net.SplitHostPort(c.address)
	if err != nil {
		return c.address
	}
	return host
}

func (a *Authenticator) authenticate(ctx context.Context, conn *tls.ConnectionState, authorization []string, from caller) (identity.Identity, error) {
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
		return a.verify(ctx, token, from)
	case a.opts.Anonymous != nil:
		return *a.opts.Anonymous, nil
	}
	return identity.Identity{}, &Failure{Reason: "nothing proves who sends this: " + a.accepted()}
}

// Token returns the identity that the token in Authorization headers proves, for requests
// that are not HTTP. The error is a *Failure.
func (a *Authenticator) Token(ctx context.Context, authorization []string, address string) (identity.Identity, error) {
	who, err := a.authenticate(ctx, nil, authorization, caller{address, false})
	a.metrics.count(who, err)
	return who, err
}

// TokenAgain is Token for a stream that was proved before and still runs. It relates to
// Token as Again relates to Authenticate.
func (a *Authenticator) TokenAgain(ctx context.Context, authorization []string, address string) (identity.Identity, error) {
	return a.authenticate(ctx, nil, authorization, caller{address, true})
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

// verify proves a token. An address that sends many wrong tokens has to wait. Tokens that
// were proved before are looked at all the same, also when the result no longer counts.
func (a *Authenticator) verify(ctx context.Context, token string, from caller) (identity.Identity, error) {
	was, known, counts := a.verified.find(token)
	if counts {
		return was.who, nil
	}
	if !known && !from.again {
		if wait := a.penalties.wait(from.host()); wait > 0 {
			return identity.Identity{}, &Failure{Reason: "too many wrong tokens came from this address", RetryAfter: wait}
		}
	}
	var wrong error
	for _, source := range a.opts.Tokens {
		epoch := source.Epoch()
		who, until, err := source.Verify(ctx, token)
		if err == nil {
			a.verified.keep(token, who, until, source, epoch)
			return who, nil
		}
		switch {
		case errors.Is(err, ErrUndecided):
			return a.undecided(was, from, err)
		case !errors.Is(err, ErrOtherToken):
			wrong = err
		}
	}
	if known {
		a.verified.forget(token)
	}
	if !from.again {
		a.penalties.add(from.host())
	}
	if wrong == nil {
		return identity.Identity{}, &Failure{Reason: "the token is of no kind that is accepted here: " + a.accepted()}
	}
	return identity.Identity{}, &Failure{Reason: "the token proves nothing: " + wrong.Error()}
}

// undecided returns the result for a token that cannot be verified now. was is its last result.
func (a *Authenticator) undecided(was verifiedToken, from caller, why error) (identity.Identity, error) {
	if now := time.Now(); from.again && was.source != nil && now.Before(was.end) && now.Before(was.until.Add(longestUndecided)) && was.source.Epoch() == was.epoch {
		return was.who, nil
	}
	return identity.Identity{}, &Failure{Reason: "the token proves nothing yet: " + why.Error(), Undecided: true, RetryAfter: retryIssuer}
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
