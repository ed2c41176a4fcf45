package credential_test

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/go-jose/go-jose/v4"

	"github.com/pilot-api/pilot-api/credential"
)

func jwk(t *testing.T, key any, id, algorithm, use string) string {
	t.Helper()
	text, err := json.Marshal(jose.JSONWebKey{Key: key, KeyID: id, Algorithm: algorithm, Use: use})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func keySet(keys ...string) string { return `{"keys":[` + strings.Join(keys, ",") + `]}` }

func TestPublicKeys(t *testing.T) {
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	ecKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	edKey, edPrivate, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	good := jwk(t, &rsaKey.PublicKey, "a", "RS256", "sig")
	// A modulus of 1024 bits, whose factors do not matter.
	weak := `{"kty":"RSA","e":"AQAB","n":"` + strings.Repeat("x", 171) + `"}`
	var many []string
	for i := range 10_000 {
		many = append(many, fmt.Sprintf(`{"kty":"OKP","kid":"%d"}`, i))
	}
	for _, c := range []struct{ name, text, err string }{
		{"RSA", keySet(good), ""},
		{"EC", keySet(jwk(t, &ecKey.PublicKey, "", "ES256", "")), ""},
		{"Ed25519", keySet(jwk(t, edKey, "e", "", "")), ""},
		{"unknown type beside a good one", keySet(good, `{"kty":"XYZ"}`), ""},
		{"for encryption beside a good one", keySet(good, jwk(t, &ecKey.PublicKey, "b", "ECDH-ES", "enc")), ""},
		{"only for encryption", keySet(jwk(t, &rsaKey.PublicKey, "b", "RSA-OAEP", "enc")), "no public key"},
		{"another algorithm", keySet(jwk(t, &rsaKey.PublicKey, "b", "none", "")), "no public key"},
		{"HMAC with an RSA key", keySet(jwk(t, &rsaKey.PublicKey, "b", "HS256", "")), "no public key"},
		{"symmetric", keySet(good, jwk(t, []byte("0123456789abcdef0123456789abcdef"), "s", "HS256", "")), "key 1 is symmetric"},
		{"symmetric, in disguise", keySet(strings.Replace(good, "{", `{"k":"c2VjcmV0",`, 1)), "key 0 is symmetric"},
		{"private", keySet(jwk(t, rsaKey, "p", "", "")), "key 0 is private"},
		{"private Ed25519", keySet(jwk(t, edPrivate, "p", "", "")), "key 0 is private"},
		{"weak", keySet(weak), "key 0 has 10"},
		{"a point that is not on the curve", keySet(`{"kty":"EC","crv":"P-256","x":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA","y":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}`), "key 0 cannot be read"},
		{"no modulus", keySet(`{"kty":"RSA","e":"AQAB"}`), "key 0 cannot be read"},
		{"long kid", keySet(jwk(t, edKey, strings.Repeat("k", 513), "", "")), "kid"},
		{"empty", keySet(), "no public key"},
		{"no keys", `{}`, "no public key"},
		{"no object", `[]`, "no JSON Web Key Set"},
		{"no JSON", `<html>secret</html>`, "no JSON Web Key Set"},
		{"text for a key", keySet(`"secret"`), "key 0 is no JSON Web Key"},
		{"too many", keySet(many[:65]...), "65 keys"},
		{"10,000", keySet(many...), "more than 65536 bytes"},
		{"too large", `{"keys":[],"x":"` + strings.Repeat("x", credential.MaxKeySet) + `"}`, "more than 65536 bytes"},
		{"nested", strings.Repeat(`{"keys":[`, 5_000), "no JSON Web Key Set"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := credential.PublicKeys([]byte(c.text))
			switch {
			case c.err == "" && err != nil, c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)):
				t.Fatalf("%v, want %q", err, c.err)
			case err != nil && strings.Contains(err.Error(), "secret"):
				t.Errorf("the error quotes the text: %v", err)
			case err != nil:
				return
			}
			again, err := credential.PublicKeys([]byte(got))
			if err != nil || again != got {
				t.Errorf("%v: what is written is not what is read:\n%s\n%s", err, got, again)
			}
			var set jose.JSONWebKeySet
			if err := json.Unmarshal([]byte(got), &set); err != nil || len(set.Keys) != 1 || !set.Keys[0].Valid() || strings.Contains(got, `"use"`) {
				t.Errorf("%v: %s", err, got)
			}
		})
	}
}
