package oidclogin_test

import (
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/oidclogin"
)

// issuer lets a person log in once the test says so.
type issuer struct {
	*httptest.Server
	approved atomic.Bool
	life     atomic.Int64 // of identity tokens, in seconds; access tokens live for two hours
	given    atomic.Int64
	revoked  atomic.Bool
}

func newIssuer(t *testing.T) (*issuer, oidclogin.Issuer) {
	t.Helper()
	i := &issuer{}
	i.life.Store(3600)
	i.Server = httptest.NewTLSServer(http.HandlerFunc(i.answer))
	t.Cleanup(i.Close)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: i.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	return i, oidclogin.Issuer{URL: i.URL, ClientID: "pilot", CAFile: ca}
}

func (i *issuer) answer(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	tell := func(code int, v any) {
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(v)
	}
	switch r.URL.Path {
	case "/.well-known/openid-configuration":
		tell(200, map[string]any{"issuer": i.URL, "token_endpoint": i.URL + "/token", "device_authorization_endpoint": i.URL + "/device", "jwks_uri": i.URL + "/keys"})
	case "/device":
		tell(200, map[string]any{"device_code": "d", "user_code": "ABCD-EFGH", "verification_uri": i.URL + "/login", "expires_in": 60, "interval": 1})
	case "/token":
		refresh := r.FormValue("grant_type") == "refresh_token"
		switch {
		case refresh && (i.revoked.Load() || !strings.HasPrefix(r.FormValue("refresh_token"), "refresh-")):
			tell(400, map[string]string{"error": "invalid_grant"})
		case !refresh && !i.approved.Load():
			i.approved.Store(true) // The person is quick.
			tell(400, map[string]string{"error": "authorization_pending"})
		default:
			n := i.given.Add(1)
			tell(200, map[string]any{"access_token": "a", "token_type": "Bearer", "id_token": i.token(n), "refresh_token": fmt.Sprint("refresh-", n), "expires_in": 7200})
		}
	default:
		http.NotFound(w, r)
	}
}

// token returns the nth token, with a life of its own.
func (i *issuer) token(n int64) string {
	claims := jwt.RegisteredClaims{ID: fmt.Sprint(n), ExpiresAt: jwt.NewNumericDate(time.Now().Add(time.Duration(i.life.Load()) * time.Second))}
	text, err := jwt.NewWithClaims(jwt.SigningMethodHS256, claims).SignedString([]byte("key of the issuer"))
	if err != nil {
		panic(err)
	}
	return text
}

// number returns which token it is.
func number(t *testing.T, token string) string {
	t.Helper()
	var claims jwt.RegisteredClaims
	if _, _, err := jwt.NewParser().ParseUnverified(token, &claims); err != nil {
		t.Errorf("%q: %v", token, err)
	}
	return claims.ID
}

// TestLogin follows a login: by a code, with a token that is used as long as it is good, and
// with new ones until the issuer refuses.
func TestLogin(t *testing.T) {
	i, at := newIssuer(t)
	file := filepath.Join(t.TempDir(), "tokens", "prod.json")
	source := &oidclogin.Source{Issuer: at, File: file}
	if _, err := source.Token(t.Context()); !errors.Is(err, oidclogin.ErrNoLogin) {
		t.Errorf("before a login: %v", err)
	}
	i.life.Store(30) // It ends before it would be used again.
	told := ""
	if err := oidclogin.Login(t.Context(), at, file, func(page, code string) { told = page + " " + code }); err != nil {
		t.Fatal(err)
	}
	if told != i.URL+"/login ABCD-EFGH" {
		t.Errorf("the person is told %q", told)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file: %v %v", info, err)
	}
	i.life.Store(3600)
	for range 2 {
		if token, err := source.Token(t.Context()); err != nil || number(t, token) != "2" {
			t.Errorf("%q, %v", token, err)
		}
	}
	other := &oidclogin.Source{Issuer: oidclogin.Issuer{URL: "https://other.example", ClientID: "pilot"}, File: file}
	if _, err := other.Token(t.Context()); !errors.Is(err, oidclogin.ErrNoLogin) {
		t.Errorf("a token of another issuer: %v", err)
	}
	i.life.Store(30)
	if err := oidclogin.Login(t.Context(), at, file, func(string, string) {}); err != nil {
		t.Fatal(err)
	}
	i.revoked.Store(true)
	if _, err := source.Token(t.Context()); !errors.Is(err, oidclogin.ErrNoLogin) {
		t.Errorf("after the issuer took the login back: %v", err)
	}
}

// TestLoginNeedsHTTPS shows that no token goes to an issuer in the clear.
func TestLoginNeedsHTTPS(t *testing.T) {
	err := oidclogin.Login(t.Context(), oidclogin.Issuer{URL: "http://login.example", ClientID: "pilot"}, filepath.Join(t.TempDir(), "t.json"), func(string, string) {})
	if err == nil || !strings.Contains(err.Error(), "https://") {
		t.Errorf("err = %v", err)
	}
}
