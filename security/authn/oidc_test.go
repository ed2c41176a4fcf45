package authn_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/pilot-api/pilot-api/security/authn"
	"github.com/pilot-api/pilot-api/security/identity"
)

func TestOIDCProvesUsers(t *testing.T) {
	i := newIssuer(t)
	a := authn.New(authn.Options{Tokens: []authn.TokenVerifier{i.verifier(t, nil)}})
	who, err := ask(a, "Bearer "+i.token(t, nil))
	if err != nil || who.Name != i.URL+"#ada" || !slices.Equal(who.Groups, []string{"shop", identity.Authenticated}) || who.By != identity.ByOIDC {
		t.Errorf("%+v, %v", who, err)
	}
	mail := authn.New(authn.Options{Tokens: []authn.TokenVerifier{i.verifier(t, func(c *authn.Issuer) { c.UsernameClaim = "email" })}})
	who, err = ask(mail, "Bearer "+i.token(t, jwt.MapClaims{"email": "ada@example.com", "email_verified": true}))
	if err != nil || who.Name != "ada@example.com" {
		t.Errorf("by mail: %+v, %v", who, err)
	}
	if _, err = ask(mail, "Bearer "+i.token(t, jwt.MapClaims{"email": "ada@example.com", "email_verified": false})); err == nil {
		t.Error("an address that is not verified is a user")
	}
}

// TestOIDCRefusesForgedTokens tries the attacks on tokens that are known. No failure may
// quote the token.
func TestOIDCRefusesForgedTokens(t *testing.T) {
	i := newIssuer(t)
	other, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	curve, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	public, err := x509.MarshalPKIXPublicKey(&i.key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	good := i.token(t, nil)
	parts := strings.Split(good, ".")
	for name, token := range map[string]string{
		"other key":          signed(t, jwt.SigningMethodRS256, other, i.claims(nil)),
		"other algorithm":    signed(t, jwt.SigningMethodES256, curve, i.claims(nil)),
		"no algorithm":       signed(t, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, i.claims(nil)),
		"key confusion":      signed(t, jwt.SigningMethodHS256, public, i.claims(nil)),
		"no signature":       parts[0] + "." + parts[1] + ".",
		"changed claims":     parts[0] + "." + strings.Split(i.token(t, jwt.MapClaims{"sub": "eve"}), ".")[1] + "." + parts[2],
		"expired":            i.token(t, jwt.MapClaims{"exp": time.Now().Add(-time.Minute).Unix()}),
		"without an end":     i.token(t, jwt.MapClaims{"exp": nil}),
		"not yet valid":      i.token(t, jwt.MapClaims{"nbf": time.Now().Add(time.Hour).Unix()}),
		"other audience":     i.token(t, jwt.MapClaims{"aud": "shop"}),
		"no audience":        i.token(t, jwt.MapClaims{"aud": nil}),
		"other issuer":       i.token(t, jwt.MapClaims{"iss": "https://evil.example"}),
		"no user":            i.token(t, jwt.MapClaims{"sub": nil}),
		"user of the system": i.token(t, jwt.MapClaims{"groups": []string{identity.Masters}}),
		"groups of numbers":  i.token(t, jwt.MapClaims{"groups": []int{1}}),
		"no token":           "abc",
		"two dots":           "..",
		"long":               strings.Repeat("a", authn.MaxToken+1),
	} {
		a := authn.New(authn.Options{Tokens: []authn.TokenVerifier{i.verifier(t, nil)}})
		who, err := ask(a, "Bearer "+token)
		var failure *authn.Failure
		if !errors.As(err, &failure) || who.Name != "" {
			t.Errorf("%s: %+v, %v", name, who, err)
			continue
		}
		for _, part := range strings.Split(token, ".") {
			if len(part) > 8 && strings.Contains(failure.Challenge(), part) {
				t.Errorf("%s: the challenge has a part of the token: %s", name, failure.Challenge())
			}
		}
	}
}

// TestWrongTokensCostLittle sends many wrong tokens, each under another unknown key: the
// issuer is hardly asked, the address is slowed down, and a known token still counts.
func TestWrongTokensCostLittle(t *testing.T) {
	i := newIssuer(t)
	a := authn.New(authn.Options{Tokens: []authn.TokenVerifier{i.verifier(t, nil)}})
	good := "Bearer " + i.token(t, nil)
	if _, err := ask(a, good); err != nil {
		t.Fatal(err)
	}
	other, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	slowed := 0
	for n := range 100_000 {
		token := jwt.NewWithClaims(jwt.SigningMethodRS256, i.claims(jwt.MapClaims{"jti": fmt.Sprint(n)}))
		token.Header["kid"] = fmt.Sprint(n)
		text := fmt.Sprintf("a.%d.c", n)
		if n < 30 { // To sign all of them takes minutes.
			if text, err = token.SignedString(other); err != nil {
				t.Fatal(err)
			}
		}
		_, err := ask(a, "Bearer "+text)
		var failure *authn.Failure
		if !errors.As(err, &failure) {
			t.Fatalf("token %d: %v", n, err)
		}
		if failure.RetryAfter > 0 {
			slowed++
		}
	}
	if slowed < 99_900 {
		t.Errorf("%d of 100,000 wrong tokens were refused without a look, want nearly all", slowed)
	}
	if n := i.fetches.Load(); n > 3 {
		t.Errorf("the keys were fetched %d times", n)
	}
	if _, err := ask(a, good); err != nil {
		t.Errorf("a token that was proved before: %v", err)
	}
}
