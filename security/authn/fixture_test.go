package authn_test

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/pilot-api/pilot-api/security/authn"
	"github.com/pilot-api/pilot-api/security/identity"
)

var discard = slog.New(slog.DiscardHandler)

// write writes a file, and returns its name.
func write(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// ask authenticates a request with Authorization headers.
func ask(a *authn.Authenticator, headers ...string) (identity.Identity, error) {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	for _, h := range headers {
		r.Header.Add("Authorization", h)
	}
	return a.Authenticate(r)
}

// issuer is an OpenID Connect issuer.
type issuer struct {
	*httptest.Server
	key     *rsa.PrivateKey
	fetches atomic.Int64 // of the keys
	instead atomic.Value // http.HandlerFunc that answers for the keys; none for the good answer
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	i := &issuer{key: key}
	i.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var answer any
		switch r.URL.Path {
		case "/.well-known/openid-configuration":
			answer = map[string]any{"issuer": i.URL, "jwks_uri": i.URL + "/keys", "id_token_signing_alg_values_supported": []string{"RS256"}}
		case "/keys":
			i.fetches.Add(1)
			if instead, ok := i.instead.Load().(http.HandlerFunc); ok {
				instead(w, r)
				return
			}
			answer = map[string]any{"keys": []any{map[string]string{
				"kty": "RSA", "kid": "1", "alg": "RS256", "use": "sig",
				"n": base64.RawURLEncoding.EncodeToString(key.N.Bytes()), "e": base64.RawURLEncoding.EncodeToString(big.NewInt(int64(key.E)).Bytes()),
			}}}
		default:
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(answer)
	}))
	t.Cleanup(i.Close)
	return i
}

// verifier returns the verifier of the issuer's tokens, once the issuer has answered it.
func (i *issuer) verifier(t *testing.T, change func(*authn.Issuer)) *authn.OIDC {
	t.Helper()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: i.Certificate().Raw})
	config := authn.Issuer{URL: i.URL, ClientID: "pilot", GroupsClaim: "groups", CAFile: write(t, string(ca))}
	if change != nil {
		change(&config)
	}
	v, err := authn.NewOIDC(config, discard)
	if err != nil {
		t.Fatal(err)
	}
	i.run(t, v)
	return v
}

// run runs a verifier, and returns when the issuer has answered it.
func (i *issuer) run(t *testing.T, v *authn.OIDC) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- v.Run(ctx) }()
	t.Cleanup(func() { stop(); <-ended })
	for deadline := time.Now().Add(10 * time.Second); !v.Ready(); {
		if time.Now().After(deadline) {
			t.Fatal("the issuer has not answered")
		}
		time.Sleep(time.Millisecond)
	}
}

// claims are those of a good token, with changes.
func (i *issuer) claims(changes jwt.MapClaims) jwt.MapClaims {
	out := jwt.MapClaims{"iss": i.URL, "aud": "pilot", "sub": "ada", "groups": []string{"shop"}, "iat": time.Now().Unix(), "exp": time.Now().Add(time.Hour).Unix()}
	for name, value := range changes {
		out[name] = value
		if value == nil {
			delete(out, name)
		}
	}
	return out
}

// token signs claims as the issuer does.
func (i *issuer) token(t *testing.T, changes jwt.MapClaims) string {
	t.Helper()
	return signed(t, jwt.SigningMethodRS256, i.key, i.claims(changes))
}

func signed(t *testing.T, method jwt.SigningMethod, key any, claims jwt.MapClaims) string {
	t.Helper()
	token := jwt.NewWithClaims(method, claims)
	token.Header["kid"] = "1"
	text, err := token.SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// connection returns the state of a connection with the certificate in two files, which
// authorities have verified.
func connection(t *testing.T, dir, name string, authorities *x509.CertPool) *tls.ConnectionState {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, name+".crt"), filepath.Join(dir, name+".key"))
	if err != nil {
		t.Fatal(err)
	}
	state := &tls.ConnectionState{PeerCertificates: []*x509.Certificate{pair.Leaf}}
	state.VerifiedChains, err = pair.Leaf.Verify(x509.VerifyOptions{Roots: authorities, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	if err != nil {
		t.Fatal(err)
	}
	return state
}
