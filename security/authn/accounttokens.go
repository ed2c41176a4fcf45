package authn

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/pilot-api/pilot-api/security/identity"
)

const (
	// AudienceAPI is the audience of tokens for the API.
	AudienceAPI = "pilot-api"
	// AudienceXDS is the audience of tokens by which proxies prove themselves.
	AudienceXDS = "pilot-api-xds"
	// AudienceIstioCA is the audience of the tokens with which agents of Istio ask for
	// certificates.
	AudienceIstioCA = "istio-ca"

	accountIssuer = "pilot-api"
	accountPrefix = "system:serviceaccount:"
)

// AccountTokens issues and verifies tokens of service accounts: JSON Web Tokens, signed by
// Ed25519. A token ends at its time, when it is revoked, and with its account. An account
// that is created again under the same name has another uid, so the old tokens are not
// valid for it. It is safe for concurrent use.
type AccountTokens struct {
	accounts *Accounts
	revoked  revokedTokens
	shared   SharedText                           // of revoked tokens; nil if none can be revoked
	keys     atomic.Pointer[[]ed25519.PrivateKey] // the first signs, all prove; nil before SetKeys
	epoch    atomic.Uint64
}

// NewAccountTokens returns AccountTokens for accounts. Until SetKeys, it issues no tokens
// and accepts none.
func NewAccountTokens(accounts *Accounts) *AccountTokens { return &AccountTokens{accounts: accounts} }

// SetKeys sets the keys. The first one signs, and all of them verify, so that a key can be
// replaced while its tokens are in use.
func (t *AccountTokens) SetKeys(keys []ed25519.PrivateKey) {
	keys = slices.Clone(keys)
	t.keys.Store(&keys)
	t.epoch.Add(1)
}

// ParseAccountKeys reads Ed25519 keys in PEM (PKCS #8), of which there must be at least one.
func ParseAccountKeys(text []byte) (keys []ed25519.PrivateKey, err error) {
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
		key, ok := parsed.(ed25519.PrivateKey)
		if err != nil || !ok {
			return nil, fmt.Errorf("must have Ed25519 keys in PKCS #8 (openssl genpkey -algorithm ed25519), found a block %s", block.Type)
		}
		keys = append(keys, key)
	}
	if len(keys) == 0 {
		return nil, errors.New("no key is in it (PEM)")
	}
	return keys, nil
}

// FollowAccountKeys sets the keys of tokens from a file, now and whenever it changes while the
// returned function runs.
func FollowAccountKeys(name string, tokens *AccountTokens, log *slog.Logger) (run func(context.Context) error, err error) {
	file, err := follow("--account-keys", name, func(text []byte) (bool, error) {
		keys, err := ParseAccountKeys(text)
		if err == nil {
			tokens.SetKeys(keys)
		}
		return true, err
	}, log)
	if err != nil {
		return nil, err
	}
	return file.run, nil
}

// AccountClaims are the claims of a token.
type AccountClaims struct {
	Namespace, Name, UID string
	Audiences            []string
	Life                 time.Duration
}

// claims are the claims of a token, with those of Kubernetes.
type claims struct {
	jwt.RegisteredClaims
	Kubernetes struct {
		Namespace      string `json:"namespace"`
		ServiceAccount struct {
			Name string `json:"name"`
			UID  string `json:"uid"`
		} `json:"serviceaccount"`
	} `json:"kubernetes.io"`
}

// ErrNoKey means that there is no key yet to sign tokens with.
var ErrNoKey = errors.New("the key that signs tokens is not known yet")

// Issue returns a token and its end.
func (t *AccountTokens) Issue(c AccountClaims) (token string, end time.Time, err error) {
	keys := t.keys.Load()
	if keys == nil {
		return "", time.Time{}, ErrNoKey
	}
	now := time.Now()
	end = now.Add(c.Life).Truncate(time.Second)
	out := claims{RegisteredClaims: jwt.RegisteredClaims{
		Issuer: accountIssuer, Subject: accountPrefix + c.Namespace + ":" + c.Name, Audience: c.Audiences, ID: newTokenID(rand.Text(), end),
		IssuedAt: jwt.NewNumericDate(now), NotBefore: jwt.NewNumericDate(now), ExpiresAt: jwt.NewNumericDate(end),
	}}
	out.Kubernetes.Namespace = c.Namespace
	out.Kubernetes.ServiceAccount.Name, out.Kubernetes.ServiceAccount.UID = c.Name, c.UID
	unsigned := jwt.NewWithClaims(jwt.SigningMethodEdDSA, out)
	unsigned.Header["kid"] = keyID((*keys)[0])
	token, err = unsigned.SignedString((*keys)[0])
	return token, end, err
}

// keyID names a key by its public part.
func keyID(key ed25519.PrivateKey) string {
	sum := sha256.Sum256(key.Public().(ed25519.PublicKey))
	return base64.RawURLEncoding.EncodeToString(sum[:12])
}

// For returns the verifier of the tokens for any of some audiences.
func (t *AccountTokens) For(audiences ...string) TokenVerifier { return accountVerifier{t, audiences} }

type accountVerifier struct {
	*AccountTokens
	audiences []string
}

// Epoch implements TokenVerifier: tokens end with their account, and when they are revoked.
func (v accountVerifier) Epoch() uint64 {
	return v.epoch.Load() + v.accounts.changes.Load() + v.revoked.changes.Load()
}

// Verify implements TokenVerifier.
func (v accountVerifier) Verify(_ context.Context, token string) (identity.Identity, time.Time, error) {
	if issuerOf(token) != accountIssuer {
		return identity.Identity{}, time.Time{}, ErrOtherToken
	}
	var c claims
	_, err := jwt.ParseWithClaims(token, &c, v.keyOf,
		jwt.WithValidMethods([]string{jwt.SigningMethodEdDSA.Alg()}), jwt.WithIssuer(accountIssuer), jwt.WithAudience(v.audiences...),
		jwt.WithExpirationRequired(), jwt.WithIssuedAt(), jwt.WithStrictDecoding())
	if err != nil {
		return identity.Identity{}, time.Time{}, v.why(err)
	}
	of := account{c.Kubernetes.Namespace, c.Kubernetes.ServiceAccount.Name}
	switch {
	case c.Subject != accountPrefix+of.namespace+":"+of.name:
		return identity.Identity{}, time.Time{}, errors.New("its subject is not its account")
	case !v.accounts.has(of, c.Kubernetes.ServiceAccount.UID):
		return identity.Identity{}, time.Time{}, errors.New("its account is gone")
	case v.revoked.has(c.Kubernetes.ServiceAccount.UID, c.ID):
		return identity.Identity{}, time.Time{}, errors.New("it is revoked")
	}
	return identity.Identity{
		Name: c.Subject, UID: c.Kubernetes.ServiceAccount.UID, By: identity.ByAccount,
		Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + of.namespace, identity.Authenticated},
		Extra:  map[string][]string{identity.CredentialID: {"JTI=" + c.ID}},
	}, c.ExpiresAt.Time, nil
}

// keyOf returns the public key that a token names.
func (v accountVerifier) keyOf(token *jwt.Token) (any, error) {
	keys := v.keys.Load()
	if keys == nil {
		return nil, ErrNoKey
	}
	for _, key := range *keys {
		if token.Header["kid"] == keyID(key) {
			return key.Public(), nil
		}
	}
	return nil, errors.New("it is signed by another key")
}

// why returns a failure without any part of the token.
func (v accountVerifier) why(err error) error {
	switch {
	case errors.Is(err, ErrNoKey):
		return fmt.Errorf("%w: %w", ErrUndecided, ErrNoKey)
	case errors.Is(err, jwt.ErrTokenExpired):
		return errors.New("it has ended")
	case errors.Is(err, jwt.ErrTokenNotValidYet), errors.Is(err, jwt.ErrTokenUsedBeforeIssued):
		return errors.New("it is not valid yet")
	case errors.Is(err, jwt.ErrTokenInvalidAudience):
		return fmt.Errorf("it is for another audience: want %s", strings.Join(v.audiences, " or "))
	}
	return errors.New("its signature is not one of this server")
}

// AccountOf returns the service account of an identity; false if the identity is none.
func AccountOf(who identity.Identity) (namespace, name string, is bool) {
	rest, is := strings.CutPrefix(who.Name, accountPrefix)
	namespace, name, found := strings.Cut(rest, ":")
	return namespace, name, is && found && who.IsProved()
}
