package authn_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/pilot-api/pilot-api/security/authn"
	"github.com/pilot-api/pilot-api/security/identity"
)

func newKey(t *testing.T) ed25519.PrivateKey {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// TestAccountTokens follows a token through the life of its account and of its key.
func TestAccountTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		accounts := &authn.Accounts{}
		accounts.Put("shop", "ci", "uid-1")
		tokens := authn.NewAccountTokens(accounts)
		claims := authn.AccountClaims{Namespace: "shop", Name: "ci", UID: "uid-1", Audiences: []string{authn.AudienceAPI}, Life: time.Hour}
		if _, _, err := tokens.Issue(claims); err != authn.ErrNoKey {
			t.Errorf("without a key: %v", err)
		}
		first, second := newKey(t), newKey(t)
		tokens.SetKeys([]ed25519.PrivateKey{first})
		a := authn.New(authn.Options{Tokens: []authn.TokenVerifier{tokens.For(authn.AudienceAPI)}})
		xds := authn.New(authn.Options{Tokens: []authn.TokenVerifier{tokens.For(authn.AudienceXDS)}})
		token, end, err := tokens.Issue(claims)
		if err != nil || !end.Equal(time.Now().Add(time.Hour)) {
			t.Fatal(end, err)
		}
		proves := func() bool { _, err := ask(a, "Bearer "+token); return err == nil }
		if who, err := ask(a, "Bearer "+token); err != nil || who.Name != "system:serviceaccount:shop:ci" || !who.In("system:serviceaccounts:shop") || !who.In(identity.Authenticated) {
			t.Errorf("%+v, %v", who, err)
		}
		if _, err := ask(xds, "Bearer "+token); err == nil {
			t.Error("a token counts for another audience")
		}
		tokens.SetKeys([]ed25519.PrivateKey{second, first})
		if !proves() {
			t.Error("a token of the key before proves nothing")
		}
		accounts.Put("shop", "other", "uid-2")
		if !proves() {
			t.Error("another account ends the token")
		}
		accounts.Delete("shop", "ci")
		if proves() {
			t.Error("a token outlives its account")
		}
		accounts.Put("shop", "ci", "uid-3")
		if proves() {
			t.Error("a token is taken for one of another account of the same name")
		}
		accounts.Put("shop", "ci", "uid-1")
		tokens.SetKeys([]ed25519.PrivateKey{second})
		if proves() {
			t.Error("a token outlives its key")
		}
		tokens.SetKeys([]ed25519.PrivateKey{first})
		if !proves() {
			t.Error("the token is good")
		}
		time.Sleep(time.Hour)
		if proves() {
			t.Error("a token outlives its time")
		}
	})
}

// TestForgedAccountTokens tries tokens that only look like those of an account.
func TestForgedAccountTokens(t *testing.T) {
	accounts := &authn.Accounts{}
	accounts.Put("shop", "ci", "uid-1")
	tokens, key := authn.NewAccountTokens(accounts), newKey(t)
	tokens.SetKeys([]ed25519.PrivateKey{key})
	good, _, err := tokens.Issue(authn.AccountClaims{Namespace: "shop", Name: "ci", UID: "uid-1", Audiences: []string{authn.AudienceAPI}, Life: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	parsed, _, err := jwt.NewParser().ParseUnverified(good, jwt.MapClaims{})
	if err != nil {
		t.Fatal(err)
	}
	with := func(method jwt.SigningMethod, key any, change func(jwt.MapClaims, map[string]any)) string {
		claims := jwt.MapClaims{}
		for name, value := range parsed.Claims.(jwt.MapClaims) {
			claims[name] = value
		}
		token := jwt.NewWithClaims(method, claims)
		token.Header["kid"] = parsed.Header["kid"]
		change(claims, token.Header)
		text, err := token.SignedString(key)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	nothing := func(jwt.MapClaims, map[string]any) {}
	set := func(name string, value any) func(jwt.MapClaims, map[string]any) {
		return func(c jwt.MapClaims, _ map[string]any) { c[name] = value }
	}
	parts := strings.Split(good, ".")
	for name, token := range map[string]string{
		"other key":       with(jwt.SigningMethodEdDSA, newKey(t), nothing),
		"no algorithm":    with(jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, nothing),
		"key confusion":   with(jwt.SigningMethodHS256, []byte(key.Public().(ed25519.PublicKey)), nothing),
		"unknown key":     with(jwt.SigningMethodEdDSA, key, func(_ jwt.MapClaims, h map[string]any) { h["kid"] = "x" }),
		"no end":          with(jwt.SigningMethodEdDSA, key, func(c jwt.MapClaims, _ map[string]any) { delete(c, "exp") }),
		"other subject":   with(jwt.SigningMethodEdDSA, key, set("sub", "system:serviceaccount:bank:root")),
		"other issuer":    with(jwt.SigningMethodEdDSA, key, set("iss", "x")),
		"issued later":    with(jwt.SigningMethodEdDSA, key, set("iat", time.Now().Add(time.Hour).Unix())),
		"no account":      with(jwt.SigningMethodEdDSA, key, set("kubernetes.io", map[string]any{})),
		"no signature":    parts[0] + "." + parts[1] + ".",
		"longer":          good + "A",
		"other signature": parts[0] + "." + parts[1] + "." + strings.Repeat("A", len(parts[2])),
	} {
		a := authn.New(authn.Options{Tokens: []authn.TokenVerifier{tokens.For(authn.AudienceAPI)}})
		if who, err := ask(a, "Bearer "+token); err == nil {
			t.Errorf("%s: %+v", name, who)
		}
	}
}
