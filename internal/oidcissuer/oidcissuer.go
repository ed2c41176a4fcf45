package oidcissuer

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// ClientID is the client that the issuer knows, and the audience of its tokens.
const ClientID = "pilot"

// Issuer is an issuer. Its tokens are those of eve of the group shop. It is safe for
// concurrent use.
type Issuer struct {
	*httptest.Server

	mu      sync.Mutex
	keys    []*ecdsa.PrivateKey // that it publishes
	signs   *ecdsa.PrivateKey
	life    time.Duration
	revoked bool
	pending bool // the next poll of a device is told to wait
	given   int
	codes   map[string]login
	change  func(back url.Values)
	without string
}

// login is one that a browser began.
type login struct{ challenge, nonce, redirect string }

// New starts an issuer, which ends with the test. It writes the authority of its certificate
// to a file.
func New(t testing.TB, caFile string) *Issuer {
	t.Helper()
	i := &Issuer{life: time.Hour, codes: map[string]login{}, change: func(url.Values) {}}
	i.Publish(t)
	i.Sign()
	i.Server = httptest.NewTLSServer(http.HandlerFunc(i.answer))
	t.Cleanup(i.Close)
	if err := os.WriteFile(caFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: i.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	return i
}

// Publish adds a key, with which the issuer signs after Sign.
func (i *Issuer) Publish(t testing.TB) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.keys = append(i.keys, key)
}

// Sign makes the issuer sign with the key that was published last.
func (i *Issuer) Sign() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.signs = i.keys[len(i.keys)-1]
}

// SetLife sets how long new identity tokens are good. Access tokens say two hours.
func (i *Issuer) SetLife(life time.Duration) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.life = life
}

// Revoke makes the issuer refuse all refresh tokens.
func (i *Issuer) Revoke() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.revoked = true
}

// OnReturn changes the parameters with which the issuer sends browsers back.
func (i *Issuer) OnReturn(change func(back url.Values)) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.change = change
}

// Without removes a field from the configuration of the issuer.
func (i *Issuer) Without(field string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.without = field
}

// Token returns a token with the claims of eve and others, which may replace them.
func (i *Issuer) Token(others jwt.MapClaims) string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.token(others)
}

func (i *Issuer) token(others jwt.MapClaims) string {
	i.given++
	claims := jwt.MapClaims{
		"iss": i.URL, "aud": ClientID, "sub": "eve", "groups": []string{"shop"}, "jti": fmt.Sprint(i.given),
		"iat": time.Now().Unix(), "exp": time.Now().Add(i.life).Unix(),
	}
	for name, value := range others {
		claims[name] = value
	}
	token := jwt.NewWithClaims(jwt.SigningMethodES256, claims)
	token.Header["kid"] = keyID(i.signs)
	text, err := token.SignedString(i.signs)
	if err != nil {
		panic(err) // A key of this curve always signs.
	}
	return text
}

func keyID(key *ecdsa.PrivateKey) string { return fmt.Sprintf("%x", key.X.Bytes()[:8]) }

func (i *Issuer) answer(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	switch r.URL.Path {
	case "/.well-known/openid-configuration":
		config := map[string]any{
			"issuer": i.URL, "token_endpoint": i.URL + "/token", "jwks_uri": i.URL + "/keys", "authorization_endpoint": i.URL + "/authorize",
			"device_authorization_endpoint": i.URL + "/device", "id_token_signing_alg_values_supported": []string{"ES256"},
		}
		delete(config, i.without)
		tell(w, http.StatusOK, config)
	case "/keys":
		tell(w, http.StatusOK, map[string]any{"keys": i.published()})
	case "/device":
		i.pending = true
		tell(w, http.StatusOK, map[string]any{"device_code": "d", "user_code": "ABCD-EFGH", "verification_uri": i.URL + "/login", "expires_in": 60, "interval": 1})
	case "/authorize":
		i.authorize(w, r)
	case "/token":
		i.give(w, r)
	default:
		http.NotFound(w, r)
	}
}

func (i *Issuer) published() (all []any) {
	for _, key := range i.keys {
		all = append(all, map[string]string{
			"kty": "EC", "crv": "P-256", "alg": "ES256", "use": "sig", "kid": keyID(key),
			"x": base64.RawURLEncoding.EncodeToString(key.X.FillBytes(make([]byte, 32))),
			"y": base64.RawURLEncoding.EncodeToString(key.Y.FillBytes(make([]byte, 32))),
		})
	}
	return all
}

// authorize sends a browser back with a code.
func (i *Issuer) authorize(w http.ResponseWriter, r *http.Request) {
	asked := r.URL.Query()
	back, err := url.Parse(asked.Get("redirect_uri"))
	if err != nil || back.Scheme != "http" || back.Hostname() != "127.0.0.1" || asked.Get("client_id") != ClientID ||
		asked.Get("response_type") != "code" || asked.Get("code_challenge_method") != "S256" || !strings.Contains(asked.Get("scope"), "openid") {
		http.Error(w, "this is no login of a program", http.StatusBadRequest)
		return
	}
	code := rand.Text()
	i.codes[code] = login{asked.Get("code_challenge"), asked.Get("nonce"), back.String()}
	answer := url.Values{"code": {code}, "state": {asked.Get("state")}, "iss": {i.URL}}
	i.change(answer)
	back.RawQuery = answer.Encode()
	http.Redirect(w, r, back.String(), http.StatusFound)
}

// give gives tokens for a code, a refresh token, or to a device.
func (i *Issuer) give(w http.ResponseWriter, r *http.Request) {
	others, fault := jwt.MapClaims{}, ""
	switch r.FormValue("grant_type") {
	case "refresh_token":
		if i.revoked || !strings.HasPrefix(r.FormValue("refresh_token"), "refresh-") {
			fault = "invalid_grant"
		}
	case "authorization_code":
		began, ok := i.codes[r.FormValue("code")]
		delete(i.codes, r.FormValue("code"))
		sum := sha256.Sum256([]byte(r.FormValue("code_verifier")))
		if !ok || base64.RawURLEncoding.EncodeToString(sum[:]) != began.challenge || r.FormValue("redirect_uri") != began.redirect || r.FormValue("client_id") != ClientID {
			fault = "invalid_grant"
		}
		others["nonce"] = began.nonce
	default:
		if i.pending {
			i.pending, fault = false, "authorization_pending" // The person is quick.
		}
	}
	if fault != "" {
		tell(w, http.StatusBadRequest, map[string]string{"error": fault})
		return
	}
	text := i.token(others)
	tell(w, http.StatusOK, map[string]any{"access_token": "a", "token_type": "Bearer", "id_token": text, "refresh_token": fmt.Sprint("refresh-", i.given), "expires_in": 7200})
}

func tell(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(v)
}
