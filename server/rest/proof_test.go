package rest_test

import (
	"crypto/ed25519"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/security/authn"
	"github.com/pilot-api/pilot-api/security/authz"
	"github.com/pilot-api/pilot-api/server/proxyauth"
	"github.com/pilot-api/pilot-api/server/rest"
	"github.com/pilot-api/pilot-api/store/cache"
	"github.com/pilot-api/pilot-api/store/memory"
)

// TestEveryPollIsProved walks the routes. None answers without a proof, and none with a node
// answers a proxy of another namespace or role.
func TestEveryPollIsProved(t *testing.T) {
	accounts := &authn.Accounts{}
	accounts.Put("shop", "web", "uid-1")
	tokens := authn.NewAccountTokens(accounts)
	tokens.SetKeys([]ed25519.PrivateKey{ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))})
	token, _, err := tokens.Issue(authn.AccountClaims{Namespace: "shop", Name: "web", UID: "uid-1", Audiences: []string{authn.AudienceXDS}, Life: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	prover := proxyauth.New(proxyauth.Options{
		Tokens:     authn.New(authn.Options{Tokens: []authn.TokenVerifier{tokens.For(authn.AudienceXDS)}}),
		Authorizer: &authz.Roles{},
	})
	router := chi.NewRouter()
	d := discovery.New(discovery.Options{Source: cache.New(memory.New(), cache.Options{Log: slog.New(slog.DiscardHandler)})})
	router.Group(func(r chi.Router) {
		rest.Mount(r, d, rest.Sockets{}, prover, slog.New(slog.DiscardHandler))
	})
	ask := func(method, path, node, token string) int {
		body := ""
		if method == http.MethodPost {
			body = `{"node":{"id":"` + node + `"}}`
		}
		r := httptest.NewRequest(method, path, strings.NewReader(body))
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		w := httptest.NewRecorder()
		router.ServeHTTP(w, r)
		return w.Code
	}
	const own = "sidecar~10.0.0.7~web-1.shop~shop.svc.cluster.local"
	parameter, withNode := regexp.MustCompile(`\{[^}]*\}`), 0
	err = chi.Walk(router, func(method, route string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
		path := func(node string) string {
			return parameter.ReplaceAllString(strings.ReplaceAll(route, "{node}", node), "x")
		}
		if route == "/v3/discovery:sockets" {
			return nil // Everybody may ask where to ask.
		}
		if code := ask(method, path(own), own, ""); code != http.StatusUnauthorized {
			t.Errorf("%s %s without a proof: %d", method, route, code)
		}
		if !strings.Contains(route, "{node}") && !strings.HasPrefix(route, "/v3/") {
			return nil
		}
		withNode++
		if code := ask(method, path(own), own, token); code == http.StatusUnauthorized || code == http.StatusForbidden {
			t.Errorf("%s %s for its own proxy: %d", method, route, code)
		}
		for _, other := range []string{strings.ReplaceAll(own, "shop", "bank"), strings.Replace(own, "sidecar", "router", 1)} {
			if code := ask(method, path(other), other, token); code != http.StatusForbidden {
				t.Errorf("%s %s as %s: %d, want 403", method, route, other, code)
			}
		}
		return nil
	})
	if err != nil || withNode < 9 {
		t.Errorf("%d routes have a node, %v", withNode, err)
	}
}
