package server_test

import (
	"github.com/pilot-api/pilot-api/server/servertest"

	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/pilot-api/pilot-api/security/authn"
	"github.com/pilot-api/pilot-api/security/authz"
	"github.com/pilot-api/pilot-api/server"
)

// TestNothingIsDecidedBeforeRolesAreRead: while the server reads its roles, a request is
// neither refused for good nor allowed, and its token does not count as wrong. Health checks
// are answered.
func TestNothingIsDecidedBeforeRolesAreRead(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(file, []byte("token-of-the-user-vic,vic,1"), 0o600); err != nil {
		t.Fatal(err)
	}
	tokens, err := authn.NewTokenFile(file, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	var known atomic.Bool
	w := servertest.StartBehind(t, anyAnswer, func(o *server.Options) {
		o.Authn, o.Roles, o.AccessKnown = authn.New(authn.Options{Tokens: []authn.TokenVerifier{tokens}}), &authz.Roles{}, known.Load
	})
	ask := func(path, token string) (int, string) {
		t.Helper()
		req, err := http.NewRequest(http.MethodGet, w.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode, resp.Header.Get("Retry-After")
	}
	for range 50 {
		for _, token := range []string{"", "wrong", "token-of-the-user-vic"} {
			if code, retry := ask(servertest.RulesPath, token); code != http.StatusServiceUnavailable || retry == "" {
				t.Fatalf("with token %q: %d, Retry-After %q", token, code, retry)
			}
		}
	}
	if code, _ := ask("/healthz", ""); code != http.StatusOK {
		t.Errorf("health: %d", code)
	}
	known.Store(true)
	for token, want := range map[string]int{"": http.StatusUnauthorized, "wrong": http.StatusUnauthorized, "token-of-the-user-vic": http.StatusForbidden} {
		if code, _ := ask(servertest.RulesPath, token); code != want {
			t.Errorf("with token %q: %d, want %d", token, code, want)
		}
	}
}
