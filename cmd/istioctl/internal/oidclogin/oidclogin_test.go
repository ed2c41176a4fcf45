package oidclogin_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/oidclogin"
	"github.com/pilot-api/pilot-api/internal/oidcissuer"
)

// newIssuer starts an issuer, and returns how to log in there.
func newIssuer(t *testing.T) (*oidcissuer.Issuer, oidclogin.Issuer) {
	t.Helper()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	i := oidcissuer.New(t, ca)
	return i, oidclogin.Issuer{URL: i.URL, ClientID: oidcissuer.ClientID, CAFile: ca}
}

// number returns which token of the issuer it is.
func number(t *testing.T, token string) string {
	t.Helper()
	var claims jwt.RegisteredClaims
	if _, _, err := jwt.NewParser().ParseUnverified(token, &claims); err != nil {
		t.Errorf("%q: %v", token, err)
	}
	return claims.ID
}

// silent has no browser, and drops what a person is told.
var silent = oidclogin.Ways{Tell: func(string, string) {}}

// TestLogin follows a login: by a code, with a token that is used as long as it is good, and
// with new ones until the issuer refuses.
func TestLogin(t *testing.T) {
	i, at := newIssuer(t)
	file := filepath.Join(t.TempDir(), "tokens", "prod.json")
	source := &oidclogin.Source{Issuer: at, File: file}
	if _, _, err := source.Token(t.Context()); !errors.Is(err, oidclogin.ErrNoLogin) {
		t.Errorf("before a login: %v", err)
	}
	i.SetLife(30 * time.Second) // It ends before it would be used again.
	told := ""
	if err := oidclogin.Login(t.Context(), at, file, oidclogin.Ways{Tell: func(page, code string) { told = page + " " + code }}); err != nil {
		t.Fatal(err)
	}
	if told != i.URL+"/login ABCD-EFGH" {
		t.Errorf("the person is told %q", told)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file: %v %v", info, err)
	}
	i.SetLife(time.Hour)
	for range 2 {
		if token, end, err := source.Token(t.Context()); err != nil || number(t, token) != "2" || time.Until(end) < 50*time.Minute {
			t.Errorf("%q, which ends at %v, %v", token, end, err)
		}
	}
	other := &oidclogin.Source{Issuer: oidclogin.Issuer{URL: "https://other.example", ClientID: "pilot"}, File: file}
	if _, _, err := other.Token(t.Context()); !errors.Is(err, oidclogin.ErrNoLogin) {
		t.Errorf("a token of another issuer: %v", err)
	}
	i.SetLife(30 * time.Second)
	if err := oidclogin.Login(t.Context(), at, file, silent); err != nil {
		t.Fatal(err)
	}
	i.Revoke()
	if _, _, err := source.Token(t.Context()); !errors.Is(err, oidclogin.ErrNoLogin) {
		t.Errorf("after the issuer took the login back: %v", err)
	}
}

// TestLoginNeedsHTTPS shows that no token goes to an issuer in the clear.
func TestLoginNeedsHTTPS(t *testing.T) {
	err := oidclogin.Login(t.Context(), oidclogin.Issuer{URL: "http://login.example", ClientID: "pilot"}, filepath.Join(t.TempDir(), "t.json"), silent)
	if err == nil || !strings.Contains(err.Error(), "https://") {
		t.Errorf("err = %v", err)
	}
}
