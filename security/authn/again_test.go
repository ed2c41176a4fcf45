package authn_test

import (
	"context"
	"crypto/ed25519"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pilot-api/pilot-api/security/authn"
	"github.com/pilot-api/pilot-api/security/identity"
)

// counted returns how many requests were counted, by their method.
func counted(t *testing.T, reg *prometheus.Registry) map[string]float64 {
	t.Helper()
	all, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	by := map[string]float64{}
	for _, family := range all {
		if family.GetName() == "pilot_authentications_total" {
			for _, m := range family.GetMetric() {
				by[m.GetLabel()[0].GetValue()] = m.GetCounter().GetValue()
			}
		}
	}
	return by
}

// TestKnownTokensOutliveWrongOnes checks that a good token counts at an address that sends wrong
// ones, whatever made its verification void, for requests and for what still runs. A token that
// has ended is known no longer.
func TestKnownTokensOutliveWrongOnes(t *testing.T) {
	for name, lapse := range map[string]func(*authn.Accounts){
		"nothing":          func(*authn.Accounts) {},
		"ten minutes":      func(*authn.Accounts) { time.Sleep(10*time.Minute + time.Second) },
		"another account":  func(a *authn.Accounts) { a.Put("shop", "other", "uid-2") },
		"an account fewer": func(a *authn.Accounts) { a.Delete("shop", "nobody") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				accounts := &authn.Accounts{}
				accounts.Put("shop", "ci", "uid-1")
				tokens := authn.NewAccountTokens(accounts)
				tokens.SetKeys([]ed25519.PrivateKey{newKey(t)})
				issue := func() string {
					token, _, err := tokens.Issue(authn.AccountClaims{Namespace: "shop", Name: "ci", UID: "uid-1", Audiences: []string{authn.AudienceAPI}, Life: time.Hour})
					if err != nil {
						t.Fatal(err)
					}
					return "Bearer " + token
				}
				reg := prometheus.NewRegistry()
				a := authn.New(authn.Options{Tokens: []authn.TokenVerifier{tokens.For(authn.AudienceAPI)}, Registry: reg})
				good, second := []string{issue()}, []string{issue()}
				r := httptest.NewRequest(http.MethodGet, "/", nil)
				r.Header["Authorization"] = good
				for way, prove := range map[string]func() (identity.Identity, error){
					"a request":          func() (identity.Identity, error) { return a.Authenticate(r) },
					"a request again":    func() (identity.Identity, error) { return a.Again(r) },
					"a stream":           func() (identity.Identity, error) { return a.Token(context.Background(), good, r.RemoteAddr) },
					"a stream once more": func() (identity.Identity, error) { return a.TokenAgain(context.Background(), good, r.RemoteAddr) },
				} {
					if _, err := ask(a, good...); err != nil {
						t.Fatal(err)
					}
					lapse(accounts)
					for range 50 {
						_, _ = ask(a, "Bearer wrong")
					}
					if who, err := prove(); err != nil || who.UID != "uid-1" {
						t.Errorf("%s: %v", way, err)
					}
				}
				before := counted(t, reg)
				for range 100 {
					_, _ = a.Again(r)
					_, _ = a.TokenAgain(context.Background(), []string{"Bearer wrong"}, "192.0.2.7:1")
				}
				for method, n := range counted(t, reg) {
					if n != before[method] {
						t.Errorf("looking again counted %v requests as %s", n-before[method], method)
					}
				}
				if _, err := a.Token(context.Background(), second, "192.0.2.7:1"); err != nil {
					t.Errorf("looking again used up the allowance of an address: %v", err)
				}
				accounts.Delete("shop", "ci")
				for range 2 {
					if _, err := a.Again(r); err == nil {
						t.Error("a token counts after its end")
					}
				}
				if _, err := ask(a, good...); err == nil || err.(*authn.Failure).RetryAfter == 0 {
					t.Errorf("a token that has ended is still known: %v", err)
				}
			})
		})
	}
}
