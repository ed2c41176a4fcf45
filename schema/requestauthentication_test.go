package schema

import (
	"fmt"
	"strings"
	"testing"
)

// testKeys is a JSON Web Key Set with a key of Ed25519.
const testKeys = `{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"a","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}`

func TestRequestAuthentication(t *testing.T) {
	rule := func(text string) string { return "jwtRules: [{issuer: 'https://issuer.example', " + text + "}]" }
	keys := fmt.Sprintf("jwks: '%s', ", testKeys)
	testSpecs(t, "security.istio.io/v1", "RequestAuthentication", []specCase{
		{"nothing", "{}", nil},
		{"keys", rule(keys), nil},
		{"keys of a URL", rule("jwksUri: 'https://issuer.example/keys'"), nil},
		{"keys of a URL in plain text", rule("jwksUri: 'http://issuer.example/keys'"), []string{"warning NotHonoured spec.jwtRules[0].jwksUri"}},
		{"discovery", "jwtRules: [{issuer: 'https://issuer.example'}]", nil},
		{"discovery in plain text", "jwtRules: [{issuer: 'http://issuer.example'}]", []string{"error FieldValueRequired spec.jwtRules[0].jwksUri"}},
		{"no place of the keys", "jwtRules: [{issuer: me}]", []string{"error FieldValueRequired spec.jwtRules[0].jwksUri"}},
		{"no issuer", "jwtRules: [{jwksUri: 'https://issuer.example/keys'}]", []string{"error FieldValueRequired spec.jwtRules[0].issuer"}},
		{"both", rule(keys + "jwksUri: 'https://issuer.example/keys'"), []string{"error FieldValueForbidden spec.jwtRules[0].jwksUri"}},
		{"file", rule("jwksUri: 'file:///etc/shadow'"), []string{"error FieldValueInvalid spec.jwtRules[0].jwksUri"}},
		{"user", rule("jwksUri: 'https://a:b@issuer.example/'"), []string{"error FieldValueInvalid spec.jwtRules[0].jwksUri"}},
		{"no keys", rule(`jwks: '{"keys":[]}'`), []string{"error FieldValueInvalid spec.jwtRules[0].jwks"}},
		{"symmetric", rule(`jwks: '{"keys":[{"kty":"oct","k":"c2VjcmV0"}]}'`), []string{"error FieldValueInvalid spec.jwtRules[0].jwks"}},
		{"no JSON", rule(`jwks: 'x'`), []string{"error FieldValueInvalid spec.jwtRules[0].jwks"}},
		{"target", "targetRefs: [{kind: Gateway}]", []string{"error FieldValueForbidden spec.targetRefs"}},
		{"places", rule(keys + "fromHeaders: [{name: X-Token, prefix: 'JWT '}, {name: y}], fromParams: [token], fromCookies: [session]"), nil},
		{"place without a name", rule(keys + "fromHeaders: [{prefix: 'JWT '}]"), []string{"error FieldValueRequired spec.jwtRules[0].fromHeaders[0].name"}},
		{"host as a place", rule(keys + "fromHeaders: [{name: Host}]"), []string{"error FieldValueForbidden spec.jwtRules[0].fromHeaders[0].name"}},
		{"pseudo-header as a place", rule(keys + "fromHeaders: [{name: ':path'}]"), []string{"error FieldValueInvalid spec.jwtRules[0].fromHeaders[0].name"}},
		{"outputs", rule(keys + "outputPayloadToHeader: x-payload, outputClaimToHeaders: [{header: x-sub, claim: sub}, {header: x-team, claim: a.b}]"), nil},
		{"output of the host", rule(keys + "outputPayloadToHeader: Host"), []string{"error FieldValueForbidden spec.jwtRules[0].outputPayloadToHeader"}},
		{"output of the length", rule(keys + "outputClaimToHeaders: [{header: Content-Length, claim: sub}]"), []string{"error FieldValueForbidden spec.jwtRules[0].outputClaimToHeaders[0].header"}},
		{"two outputs", rule(keys + "outputPayloadToHeader: x-a, outputClaimToHeaders: [{header: X-A, claim: sub}]"), []string{"error FieldValueDuplicate spec.jwtRules[0].outputClaimToHeaders[0].header"}},
		{"timeout", rule("timeout: 10s"), nil},
		{"long timeout", rule("timeout: 11s"), []string{"error FieldValueInvalid spec.jwtRules[0].timeout"}},
		{"no timeout", rule("timeout: 0s"), []string{"error FieldValueInvalid spec.jwtRules[0].timeout"}},
		{"too many", "jwtRules: [" + strings.Repeat("{issuer: 'https://issuer.example'}, ", 65) + "]", []string{"error FieldValueTooLong spec.jwtRules"}},
	})
}
