package main

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/internal/testbed"
)

// loginIssuer is an OpenID Connect issuer at which eve of the group shop logs in at once.
type loginIssuer struct {
	*httptest.Server
	key *rsa.PrivateKey
}

func newLoginIssuer(t *testing.T, ca string) *loginIssuer {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	i := &loginIssuer{key: key}
	i.Server = httptest.NewTLSServer(http.HandlerFunc(i.answer))
	t.Cleanup(i.Close)
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: i.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	return i
}

func (i *loginIssuer) answer(w http.ResponseWriter, r *http.Request) {
	number := base64.RawURLEncoding.EncodeToString
	answers := map[string]func() any{
		"/.well-known/openid-configuration": func() any {
			return map[string]any{
				"issuer": i.URL, "token_endpoint": i.URL + "/token", "jwks_uri": i.URL + "/keys",
				"device_authorization_endpoint": i.URL + "/device", "id_token_signing_alg_values_supported": []string{"RS256"},
			}
		},
		"/keys": func() any {
			return map[string]any{"keys": []any{map[string]any{
				"kty": "RSA", "alg": "RS256", "use": "sig", "kid": "1",
				"n": number(i.key.N.Bytes()), "e": number(big.NewInt(int64(i.key.E)).Bytes()),
			}}}
		},
		"/device": func() any {
			return map[string]any{"device_code": "d", "user_code": "ABCD", "verification_uri": i.URL + "/login", "expires_in": 60, "interval": 1}
		},
		"/token": func() any {
			token := jwt.NewWithClaims(jwt.SigningMethodRS256, jwt.MapClaims{
				"iss": i.URL, "aud": "pilot", "sub": "eve", "groups": []string{"shop"},
				"iat": time.Now().Unix(), "exp": time.Now().Add(time.Hour).Unix(),
			})
			token.Header["kid"] = "1"
			text, err := token.SignedString(i.key)
			if err != nil {
				panic(err)
			}
			return map[string]any{"access_token": "a", "token_type": "Bearer", "id_token": text, "refresh_token": "r", "expires_in": 3600}
		},
	}
	answer, ok := answers[r.URL.Path]
	if !ok {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer())
}

// TestIstioctlLogsIn has a person log in at an issuer: the server knows them from then on, and
// no other context uses their token.
func TestIstioctlLogsIn(t *testing.T) {
	outside.Slow(t)
	dir := t.TempDir()
	if err := testbed.Build(dir, "istioctl"); err != nil {
		t.Fatal(err)
	}
	ca := filepath.Join(dir, "issuer.pem")
	issuer := newLoginIssuer(t, ca)
	s := startSecured(t, "--oidc-issuer", issuer.URL, "--oidc-client-id", "pilot", "--oidc-ca", ca, "--oidc-groups-claim", "groups")
	run := func(args ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), filepath.Join(dir, "istioctl"), args...)
		cmd.Dir, cmd.Env = dir, []string{"HOME=" + dir, "ISTIOCTL_CONFIG=" + filepath.Join(dir, "config")}
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	for _, args := range [][]string{
		{"config", "set-context", "prod", "--server", "https://" + s.api, "--certificate-authority", s.at("authority.crt")},
		{"config", "set-context", "other", "--server", "https://" + s.api, "--certificate-authority", s.at("authority.crt")},
		{"login", "prod", "--oidc-issuer", issuer.URL, "--oidc-client-id", "pilot", "--oidc-ca", "issuer.pem"},
		{"login", "prod"},
	} {
		if out, err := run(args...); err != nil {
			t.Fatalf("istioctl %q: %v: %s", args, err, out)
		}
	}
	if out, err := run("whoami", "--context", "prod"); err != nil || !strings.Contains(out, issuer.URL+"#eve") || !strings.Contains(out, "shop") {
		t.Errorf("%v: %s", err, out)
	}
	if out, err := run("whoami", "--context", "other"); err == nil || strings.Contains(out, "eve") {
		t.Errorf("another context: %s", out)
	}
	if out, err := run("get", "routerules", "--context", "prod"); err == nil || !strings.Contains(out, "eve") {
		t.Errorf("without a role: %v: %s", err, out)
	}
}
