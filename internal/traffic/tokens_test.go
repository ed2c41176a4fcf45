package traffic_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/golang-jwt/jwt/v5"

	"github.com/pilot-api/pilot-api/compile"
	"github.com/pilot-api/pilot-api/envoy/envoytest"
	"github.com/pilot-api/pilot-api/explain"
	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
)

// tokenKeys are the keys of issuers, and of a stranger.
type tokenKeys struct {
	ec, second, stranger *ecdsa.PrivateKey
	rsa                  *rsa.PrivateKey
	ed                   ed25519.PrivateKey
}

func newTokenKeys(t *testing.T) tokenKeys {
	t.Helper()
	var k tokenKeys
	for _, to := range []**ecdsa.PrivateKey{&k.ec, &k.second, &k.stranger} {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		*to = key
	}
	var err error
	if k.rsa, err = rsa.GenerateKey(rand.Reader, 2048); err != nil {
		t.Fatal(err)
	}
	if _, k.ed, err = ed25519.GenerateKey(rand.Reader); err != nil {
		t.Fatal(err)
	}
	return k
}

// keySet returns the public keys of signers, called k0, k1 and so on.
func keySet(t *testing.T, keys ...crypto.Signer) string {
	t.Helper()
	var set jose.JSONWebKeySet
	for i, key := range keys {
		set.Keys = append(set.Keys, jose.JSONWebKey{Key: key.Public(), KeyID: fmt.Sprintf("k%d", i), Use: "sig"})
	}
	text, err := json.Marshal(set)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// token returns a token of an issuer for ada, with further claims, that a key called kid signs.
func token(t *testing.T, key any, kid, issuer string, others jwt.MapClaims) string {
	t.Helper()
	claims := jwt.MapClaims{"iss": issuer, "sub": "ada", "aud": "shop", "exp": time.Now().Add(time.Hour).Unix()}
	maps.Copy(claims, others)
	for name, value := range claims {
		if value == nil {
			delete(claims, name)
		}
	}
	method := map[string]jwt.SigningMethod{
		"*rsa.PrivateKey": jwt.SigningMethodRS256, "ed25519.PrivateKey": jwt.SigningMethodEdDSA, "*ecdsa.PrivateKey": jwt.SigningMethodES256,
		"[]uint8": jwt.SigningMethodHS256, "jwt.unsafeNoneMagicConstant": jwt.SigningMethodNone,
	}[fmt.Sprintf("%T", key)]
	made := jwt.NewWithClaims(method, claims)
	if kid != "" {
		made.Header["kid"] = kid
	}
	text, err := made.SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func bearer(token string) string { return "authorization: Bearer " + token }

// tokenRow is a request with some header lines, and the status of its answer.
type tokenRow struct {
	name    string
	path    string
	headers []string
	want    int
}

// showing runs a server that answers each request with its headers and its query.
func showing(t *testing.T) int {
	t.Helper()
	return envoytest.Port(envoytest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]any{"headers": r.Header, "query": r.URL.RawQuery})
	}))
}

// edgeService is a gateway with an application behind it.
const edgeService = `
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: edge}
spec:
  servers: [{port: {number: 8080, name: http, protocol: HTTP}, hosts: [app.example]}]
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: app}
spec:
  hosts: [app.default.svc.cluster.local]
  ports: [{number: 80, name: http, protocol: HTTP, targetPort: %[1]d}]
  resolution: STATIC
  endpoints: [{address: 127.0.0.1}]
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: app}
spec:
  hosts: [app.example]
  gateways: [edge]
  http: [{route: [{destination: {host: app.default.svc.cluster.local, port: {number: 80}}}]}]
---
`

// tokenEnvoys runs a sidecar and a router under the same objects. ask sends a request to both,
// which must answer with the same status, and returns the answer of the sidecar.
//
// Every statement of package explain must be true: a token whose signature decides may be refused too.
func tokenEnvoys(t *testing.T, objects string, keys *mesh.KeySets) (ask func(t *testing.T, text string) envoytest.Answer) {
	t.Helper()
	port := showing(t)
	var beside *ir.Config // that of the sidecar
	start := func(node, services string) *envoytest.Envoy {
		snapshot := parsedMesh(t, mesh.DefaultSettings(), strings.TrimSuffix(fmt.Sprintf(services, port), "---\n")+objects).WithKeys(keys)
		config, _ := compile.Proxy(snapshot, viewOf(t, snapshot, node))
		if node == callerNode {
			beside = config
		}
		return envoytest.Start(t, withEndpoints(snapshot, withTables(config)))
	}
	sidecar, router := start(callerNode, accessService), start(routerNode, edgeService)
	return func(t *testing.T, text string) envoytest.Answer {
		t.Helper()
		one := envoytest.Ask(t, sidecar.Captured("10.0.0.7", 80), text)
		other := envoytest.Ask(t, router.DialPort(8080), text)
		if one.Status != other.Status {
			t.Errorf("%.200q: a sidecar answers %d, and a gateway %d", text, one.Status, other.Status)
		}
		if !strings.HasPrefix(text, "GET") || len(text) > 60<<10 {
			return one
		}
		found := explanation(t, beside, text)
		depends := slices.ContainsFunc(found.Tokens, func(t explain.Token) bool { return t.Effect == explain.Depends })
		if said := answerOf(found); said != one.Status && !(depends && one.Status == http.StatusUnauthorized) {
			t.Errorf("%.200q is explained as %d, and the Envoy answers %d\n%+v", text, said, one.Status, found)
		}
		if found.TokenRequired != (one.Status == http.StatusForbidden && (!strings.Contains(text, ".eyJ") || strings.Contains(text, "x-other"))) {
			t.Errorf("%.200q: a token is required: %v", text, found.TokenRequired)
		}
		return one
	}
}

func authentication(name, rules string) string {
	return fmt.Sprintf("---\napiVersion: security.istio.io/v1\nkind: RequestAuthentication\nmetadata: {name: %s}\nspec: {jwtRules: [%s]}\n", name, rules)
}

// TestTokens sends requests with tokens of all kinds to a workload and through a gateway.
//
// Observes RequestAuthentication jwtRules[].issuer jwtRules[].audiences jwtRules[].jwks jwtRules[].jwksUri
// Observes RequestAuthentication jwtRules[].fromHeaders[].name jwtRules[].fromHeaders[].prefix jwtRules[].fromParams jwtRules[].fromCookies
// Observes RequestAuthentication jwtRules[].outputPayloadToHeader jwtRules[].outputClaimToHeaders[].header jwtRules[].outputClaimToHeaders[].claim
// Observes RequestAuthentication jwtRules[].forwardOriginalToken jwtRules[].spaceDelimitedClaims
// Observes AuthorizationPolicy rules[].from[].source.requestPrincipals rules[].from[].source.notRequestPrincipals
func TestTokens(t *testing.T) {
	outside.Slow(t)
	k := newTokenKeys(t)
	const a, b, c, d = "https://a.example", "https://b.example", "https://c.example", "https://d.example"
	fetched, missing := mesh.KeySource{URI: "https://d.example/keys"}, "https://c.example/keys"
	keys := mesh.NewKeySets(map[mesh.KeySource]mesh.KeySet{fetched: {Keys: keySet(t, k.ec)}})
	ask := tokenEnvoys(t, authentication("many",
		fmt.Sprintf(`{issuer: %q, audiences: [shop, other], jwks: '%s', outputPayloadToHeader: x-claims, spaceDelimitedClaims: [words],
		outputClaimToHeaders: [{header: X-Sub, claim: sub}, {header: x-team, claim: org.team}]},`, a, keySet(t, k.ec, k.second, k.ed))+
			fmt.Sprintf(`{issuer: %q, jwks: '%s', fromHeaders: [{name: X-B-Token}, {name: x-b-prefixed, prefix: "JWT "}], fromParams: [t], fromCookies: [session], forwardOriginalToken: true},`, b, keySet(t, k.rsa))+
			fmt.Sprintf(`{issuer: %q, jwksUri: %q}, {issuer: %q, jwksUri: %q}`, c, missing, d, fetched.URI))+
		policy("needs", `{action: DENY, rules: [{from: [{source: {notRequestPrincipals: ['*']}}], to: [{operation: {paths: ['/needs*']}}]}]}`)+
		policy("ada", `{action: DENY, rules: [{from: [{source: {notRequestPrincipals: ['https://a.example/ada']}}], to: [{operation: {paths: ['/ada*']}}]}]}`)+
		policy("when", `{action: DENY, rules: [{to: [{operation: {paths: ['/when*']}}], when: [{key: 'request.auth.claims[words]', notValues: [two]}]},
		{to: [{operation: {paths: ['/when*']}}], when: [{key: 'request.auth.claims[org][team]', notValues: [red]}]},
		{to: [{operation: {paths: ['/when*']}}], when: [{key: request.auth.audiences, notValues: [other]}]}]}`), keys)
	good, ofB := token(t, k.ec, "k0", a, nil), token(t, k.rsa, "k0", b, nil)
	now := time.Now()
	publicText := keySet(t, k.rsa)
	parts := strings.Split(good, ".")
	changed := parts[0] + "." + base64.RawURLEncoding.EncodeToString([]byte(`{"iss":"https://a.example","sub":"eve","aud":"shop"}`)) + "." + parts[2]
	big := jwt.MapClaims{"filler": strings.Repeat("x", 64<<10)}
	for _, row := range []tokenRow{
		{"no token", "/", nil, 200},
		{"no token where one is needed", "/needs", nil, 403},
		{"good", "/", []string{bearer(good)}, 200},
		{"good where one is needed", "/needs", []string{bearer(good)}, 200},
		{"good in the query", "/needs?access_token=" + good, nil, 200},
		{"the second key", "/needs", []string{bearer(token(t, k.second, "k1", a, nil))}, 200},
		{"Ed25519", "/needs", []string{bearer(token(t, k.ed, "k2", a, nil))}, 200},
		{"without a kid", "/needs", []string{bearer(token(t, k.second, "", a, nil))}, 200},
		{"keys that were fetched", "/needs", []string{bearer(token(t, k.ec, "k0", d, nil))}, 200},
		{"keys that cannot be had", "/", []string{bearer(token(t, k.ec, "k0", c, nil))}, 401},
		{"unknown issuer", "/", []string{bearer(token(t, k.ec, "k0", "https://e.example", nil))}, 401},
		{"issuer in other letters", "/", []string{bearer(token(t, k.ec, "k0", "https://A.example", nil))}, 401},
		{"no issuer", "/", []string{bearer(token(t, k.ec, "k0", a, jwt.MapClaims{"iss": nil}))}, 401},
		{"signed by another issuer", "/", []string{bearer(token(t, k.rsa, "k0", a, nil))}, 401},
		{"signed by a stranger", "/", []string{bearer(token(t, k.stranger, "k0", a, nil))}, 401},
		{"unknown kid", "/", []string{bearer(token(t, k.ec, "k9", a, nil))}, 401},
		{"kid of another key", "/", []string{bearer(token(t, k.ec, "k1", a, nil))}, 401},
		{"wrong audience", "/", []string{bearer(token(t, k.ec, "k0", a, jwt.MapClaims{"aud": "bank"}))}, 403},
		{"one of two audiences", "/needs", []string{bearer(token(t, k.ec, "k0", a, jwt.MapClaims{"aud": []string{"bank", "other"}}))}, 200},
		{"no audience", "/", []string{bearer(token(t, k.ec, "k0", a, jwt.MapClaims{"aud": nil}))}, 403},
		{"any audience", "/needs", []string{"x-b-token: " + token(t, k.rsa, "k0", b, jwt.MapClaims{"aud": "bank"})}, 200},
		{"expired", "/", []string{bearer(token(t, k.ec, "k0", a, jwt.MapClaims{"exp": now.Add(-2 * time.Minute).Unix()}))}, 401},
		{"not yet valid", "/", []string{bearer(token(t, k.ec, "k0", a, jwt.MapClaims{"nbf": now.Add(2 * time.Minute).Unix()}))}, 401},
		{"alg none", "/", []string{bearer(token(t, jwt.UnsafeAllowNoneSignatureType, "k0", a, nil))}, 401},
		{"signed with the text of a public key", "/", []string{"x-b-token: " + token(t, []byte(publicText), "k0", b, nil)}, 401},
		{"changed claims", "/", []string{bearer(changed)}, 401},
		{"without a signature", "/", []string{bearer(parts[0] + "." + parts[1] + ".")}, 401},
		{"two parts", "/", []string{bearer(parts[0] + "." + parts[1])}, 401},
		{"no token at all", "/", []string{bearer("x")}, 401},
		{"another scheme", "/", []string{"authorization: Basic YTpi"}, 200},
		{"another scheme where one is needed", "/needs", []string{"authorization: Basic YTpi"}, 403},
		{"claims of 64 KiB", "/", []string{bearer(token(t, k.ec, "k0", a, big))}, 431},
		{"claims of 32 KiB", "/needs", []string{bearer(token(t, k.ec, "k0", a, jwt.MapClaims{"filler": strings.Repeat("x", 24<<10)}))}, 200},
		{"of b at its header", "/needs", []string{"x-b-token: " + ofB}, 200},
		{"of b after a prefix", "/needs", []string{"X-B-Prefixed: JWT " + ofB}, 200},
		{"of b in the query", "/needs?t=" + ofB, nil, 200},
		{"of b in a cookie", "/needs", []string{"cookie: session=" + ofB}, 200},
		{"of b at the place of a", "/", []string{bearer(ofB)}, 401},
		{"of a at the place of b", "/", []string{"x-b-token: " + good}, 401},
		{"of a in another header", "/needs", []string{"x-other: " + good}, 403},
		{"two good ones", "/needs", []string{bearer(good), "x-b-token: " + ofB}, 200},
		{"a good and a bad one", "/", []string{bearer(good), "x-b-token: " + changed}, 401},
		{"a bad and a good one", "/", []string{bearer(changed), "x-b-token: " + ofB}, 401},
		{"a good one in the header, a bad one in the query", "/?access_token=" + changed, []string{bearer(good)}, 401},
		{"a good header twice", "/", []string{bearer(good), bearer(good)}, 401},
		{"a good and a bad header", "/", []string{bearer(good), bearer(changed)}, 401},
		{"ada", "/ada", []string{bearer(good)}, 200},
		{"eve", "/ada", []string{bearer(token(t, k.ec, "k0", a, jwt.MapClaims{"sub": "eve"}))}, 403},
		{"ada of another issuer", "/ada", []string{"x-b-token: " + ofB}, 403},
		{"fitting claims", "/when", []string{bearer(token(t, k.ec, "k0", a, jwt.MapClaims{"words": "one two", "org": map[string]string{"team": "red"}, "aud": "other"}))}, 200},
		{"another word", "/when", []string{bearer(token(t, k.ec, "k0", a, jwt.MapClaims{"words": "one twofold", "org": map[string]string{"team": "red"}, "aud": "other"}))}, 403},
		{"another team", "/when", []string{bearer(token(t, k.ec, "k0", a, jwt.MapClaims{"words": "two", "org": map[string]string{"team": "blue"}, "aud": "other"}))}, 403},
		{"another audience", "/when", []string{bearer(token(t, k.ec, "k0", a, jwt.MapClaims{"words": "two", "org": map[string]string{"team": "red"}, "aud": "shop"}))}, 403},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := ask(t, get("app.example", row.path, row.headers...)); got.Status != row.want {
				t.Errorf("%d %s, want %d", got.Status, got.Body, row.want)
			}
		})
	}
	testTokenOutputs(t, ask, good, ofB)
	// A request without a path in the usual form reaches no workload.
	for _, text := range []string{"OPTIONS * HTTP/1.1\r\nhost: a\r\n" + bearer(changed) + "\r\n\r\n", "CONNECT a:80 HTTP/1.1\r\nhost: a:80\r\n" + bearer(changed) + "\r\n\r\n"} {
		if got := ask(t, text); got.Status == 200 {
			t.Errorf("%.20q: %d %s", text, got.Status, got.Body)
		}
	}
}

// testTokenOutputs checks what the workload gets of tokens, and that callers cannot forge it.
func testTokenOutputs(t *testing.T, ask func(*testing.T, string) envoytest.Answer, good, ofB string) {
	forged := []string{"x-claims: forged", "x-sub: forged", "x-team: forged", "X-Sub: forged"}
	payload := strings.Split(good, ".")[1]
	for _, row := range []struct {
		name, path string
		headers    []string
		want       map[string]string // "" for a header that must not be there
	}{
		{"nothing", "/", forged, map[string]string{"X-Claims": "", "X-Sub": "", "X-Team": ""}},
		{"in the header", "/", append(forged, bearer(good)), map[string]string{"X-Claims": payload, "X-Sub": "ada", "X-Team": "", "Authorization": ""}},
		{"in the query", "/?access_token=" + good, forged, map[string]string{"X-Claims": payload, "X-Sub": "ada", "X-Team": ""}},
		{"of b", "/", append(forged, "x-b-token: "+ofB), map[string]string{"X-Claims": "", "X-Sub": "", "X-Team": "", "X-B-Token": ofB}},
		{"two", "/", append(forged, bearer(good), "x-b-token: "+ofB), map[string]string{"X-Claims": payload, "X-Sub": "ada", "Authorization": "", "X-B-Token": ofB}},
	} {
		t.Run("outputs: "+row.name, func(t *testing.T) {
			answer := ask(t, get("app.example", row.path, row.headers...))
			var got struct {
				Headers http.Header
				Query   string
			}
			if err := json.Unmarshal([]byte(answer.Body), &got); err != nil {
				t.Fatalf("%d %s", answer.Status, answer.Body)
			}
			for name, want := range row.want {
				if found := strings.Join(got.Headers.Values(name), "|"); found != want {
					t.Errorf("%s: %q, want %q", name, found, want)
				}
			}
			if strings.Contains(got.Query, "access_token") {
				t.Errorf("the workload gets the query %s", got.Query)
			}
		})
	}
}

// TestTokensOfOneIssuer has rules for one issuer at two places with different keys and audiences, and one of another issuer
// at one of these places.
func TestTokensOfOneIssuer(t *testing.T) {
	outside.Slow(t)
	k := newTokenKeys(t)
	const a, b = "https://a.example", "https://b.example"
	ask := tokenEnvoys(t,
		authentication("one", fmt.Sprintf(`{issuer: %q, audiences: [x], jwks: '%s', fromHeaders: [{name: x}], outputPayloadToHeader: claims-x}`, a, keySet(t, k.ec)))+
			authentication("two", fmt.Sprintf(`{issuer: %q, audiences: [y], jwks: '%s', fromHeaders: [{name: y}], outputPayloadToHeader: claims-y}`, a, keySet(t, k.second)))+
			authentication("three", fmt.Sprintf(`{issuer: %q, jwks: '%s', fromHeaders: [{name: x}, {name: y, prefix: "B "}], outputPayloadToHeader: claims-b}`, b, keySet(t, k.ed)))+
			authentication("four", fmt.Sprintf(`{issuer: %q, audiences: [z], jwks: '%s', fromHeaders: [{name: x}], outputPayloadToHeader: claims-z}`, a, keySet(t, k.ec)))+
			policy("needs", `{action: DENY, rules: [{from: [{source: {notRequestPrincipals: ['*']}}], to: [{operation: {paths: ['/needs*']}}]}]}`), nil)
	forAudience := func(audience string) jwt.MapClaims { return jwt.MapClaims{"aud": audience} }
	x, y, z := token(t, k.ec, "k0", a, forAudience("x")), token(t, k.second, "k0", a, forAudience("y")), token(t, k.ec, "k0", a, forAudience("z"))
	ofB := token(t, k.ed, "k0", b, nil)
	all := []string{"Claims-X", "Claims-Y", "Claims-Z", "Claims-B"}
	for _, row := range []struct {
		tokenRow
		outputs []string // of all
	}{
		{tokenRow{"none", "/", nil, 200}, nil},
		{tokenRow{"none where one is needed", "/needs", nil, 403}, nil},
		{tokenRow{"x at x", "/needs", []string{"x: " + x}, 200}, []string{"Claims-X"}},
		{tokenRow{"y at y", "/needs", []string{"y: " + y}, 200}, []string{"Claims-Y"}},
		{tokenRow{"z at x", "/needs", []string{"x: " + z}, 200}, []string{"Claims-Z"}},
		{tokenRow{"b at x", "/needs", []string{"x: " + ofB}, 200}, []string{"Claims-B"}},
		{tokenRow{"x and y", "/needs", []string{"x: " + x, "y: " + y}, 200}, []string{"Claims-X", "Claims-Y"}},
		{tokenRow{"b and y", "/needs", []string{"x: " + ofB, "y: " + y}, 200}, []string{"Claims-Y", "Claims-B"}},
		{tokenRow{"y at x", "/", []string{"x: " + y}, 403}, nil},
		{tokenRow{"x at y", "/", []string{"y: " + x}, 403}, nil},
		{tokenRow{"z at y", "/", []string{"y: " + z}, 403}, nil},
		{tokenRow{"x, and y of a stranger", "/", []string{"x: " + x, "y: " + token(t, k.stranger, "k0", a, forAudience("y"))}, 401}, nil},
		{tokenRow{"y, and x of a stranger", "/", []string{"y: " + y, "x: " + token(t, k.stranger, "k0", a, forAudience("x"))}, 401}, nil},
		{tokenRow{"x for y", "/", []string{"x: " + token(t, k.ec, "k0", a, forAudience("y"))}, 403}, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			answer := ask(t, get("app.example", row.path, append(row.headers, "claims-x: forged", "claims-y: forged", "claims-z: forged", "claims-b: forged")...))
			if answer.Status != row.want {
				t.Errorf("%d %s, want %d", answer.Status, answer.Body, row.want)
			}
			var got struct{ Headers http.Header }
			if answer.Status == 200 && json.Unmarshal([]byte(answer.Body), &got) != nil {
				t.Fatal(answer.Body)
			}
			var outputs []string
			for _, name := range all {
				if value := got.Headers.Get(name); value == "forged" {
					t.Errorf("%s is forged", name)
				} else if value != "" {
					outputs = append(outputs, name)
				}
			}
			if !slices.Equal(outputs, row.outputs) {
				t.Errorf("the workload gets %v, want %v", outputs, row.outputs)
			}
		})
	}
}
